export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="logo-ground" />
      <path d="M8 6v20M24 6v20M8 11h16" class="logo-gate" />
      <path d="M11.5 17c1.5-1.6 3-1.6 4.5 0s3 1.6 4.5 0M11.5 22.5c1.5-1.6 3-1.6 4.5 0s3 1.6 4.5 0" class="logo-tide" />
    </svg>
  );
}
