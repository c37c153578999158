// TypeScript looks for the types of a .mjs file here.
export * from "./imageworker.js";
