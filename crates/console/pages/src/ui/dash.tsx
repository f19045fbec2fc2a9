/** In place of a value that there is not; left out where a row is a block. */
export const Dash = () => <span class="dim absent">–</span>;
