/** A sentence of the gateway, in which names stand between backticks. */
export function Ticked({ children }: { children: string }) {
  return <>{children.split("`").map((piece, index) => (index % 2 === 1 ? <b key={index}>{piece}</b> : piece))}</>;
}
