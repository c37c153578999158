/** The options of the command line. An error is reported in one line, with an exit status of sysexits.h. */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

/** Ends the program for a reason. */
export function end(status, reason) {
  console.error(`gallery: ${reason}`);
  process.exit(status);
}

/** `{ list, pictures, port, side, workerOptions }`. `list` has the URLs of `--list`, if given. The help is `script`'s first comment. */
export function options(script) {
  const given = parsed();
  if (given.help) {
    const [, help] = /\/\*\*\n([^]*?)\n \*\//.exec(readFileSync(script, "utf8"));
    console.log(help.replace(/^ \* ?/gm, ""));
    process.exit();
  }
  return {
    list: given.list && listed(given.list),
    pictures: whole(given, "pictures", 1, 1_000_000),
    port: whole(given, "port", 0, 65_535),
    side: whole(given, "side", 1, 4096),
    workerOptions: given.workerOptions,
  };
}

function parsed() {
  const [, , ...words] = process.argv;
  const [own, workerOptions] = words.includes("--")
    ? [words.slice(0, words.indexOf("--")), words.slice(words.indexOf("--") + 1)]
    : [words, []];
  try {
    const { values } = parseArgs({
      args: own,
      options: {
        list: { type: "string" },
        pictures: { type: "string", default: "2000" },
        port: { type: "string", default: "8080" },
        side: { type: "string", default: "240" },
        help: { type: "boolean", short: "h" },
      },
    });
    return { ...values, workerOptions };
  } catch (error) {
    return end(64, `${error.message.split(/\.\s/)[0]}; see --help`);
  }
}

function whole(given, name, low, high) {
  const text = given[name];
  if (/^\d{1,9}$/.test(text) && Number(text) >= low && Number(text) <= high) return Number(text);
  return end(64, `--${name} ${text} is not a number from ${low} to ${high}`);
}

/** The URLs of a file, one a line, as for the shell recipes. Blanks, empty lines and lines that begin with # are skipped. */
function listed(path) {
  let text;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return end(66, `the list cannot be read: ${error.message}`);
  }
  const lines = text.split("\n").map((line) => line.trim()); // A byte order mark is a blank, too.
  const urls = lines.filter((line) => line && !line.startsWith("#"));
  return urls.length > 0 ? urls : end(65, `the list ${path} is empty`);
}
