// Texts of strangers: shown as text alone, and without characters that could turn the direction of writing or hide.

/** Controls, marks and overrides of direction, and what has no width. Joined emoji come apart by that, into their parts. */
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

/** The text with a sign in place of each such character. Lines and tabs stay. */
export const harmless = (text: string): string => text.replace(STEERING, "\ufffd");

/** At most `most` characters, with an ellipsis for the rest. */
export const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/** `prometheus_remote_write` as people read it: `prometheus remote write`. */
export const words = (name: string): string => name.replaceAll("_", " ");

/** With a capital letter, as a sentence begins. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
