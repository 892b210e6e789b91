// Remembers the language of the examples, copies code, and searches while people
// type. Every page works without this file.
"use strict";

// The API reference was at /docs, with an address such as /docs#/Runs/createGeneration for each operation.
if (location.pathname === "/docs" && location.hash.startsWith("#/")) {
  location.replace("/docs/api" + location.hash);
}

// Browsers can forbid storage.
const storageKey = "atelier-docs-language";
function readLanguage() {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}
function storeLanguage(language) {
  try {
    localStorage.setItem(storageKey, language);
  } catch {
    // The choice is then valid for this page only.
  }
}

function chooseLanguage(language) {
  for (const button of document.querySelectorAll(".example input")) {
    if (button.value === language) {
      button.checked = true;
    }
  }
}

chooseLanguage(readLanguage());
document.addEventListener("change", (event) => {
  const button = event.target;
  if (!button.matches(".example input")) {
    return;
  }
  const top = button.getBoundingClientRect().top;
  chooseLanguage(button.value);
  storeLanguage(button.value);
  // Examples above have changed their height: the one in use keeps its place.
  scrollBy(0, button.getBoundingClientRect().top - top);
});

// Browsers disable navigator.clipboard on pages without TLS.
async function copyText(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}

for (const box of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(box.querySelector("code"))) ? "Copied" : "Press Ctrl+C";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  box.append(button);
}

// A link in the navigation closes it on small screens, also if it leads to this page.
const contents = document.getElementById("contents");
contents.addEventListener("click", (event) => {
  if (event.target.closest("a")) {
    contents.hidePopover();
  }
});
contents.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });

// The search. The rules are those of search.go.
const field = document.getElementById("q");
const found = document.getElementById("found");
let index;

async function readIndex() {
  index ??= fetch("/docs/search.json").then((response) => {
    if (!response.ok) {
      throw new Error(response.statusText);
    }
    return response.json();
  });
  try {
    return await index;
  } catch {
    index = undefined; // the next key tries again; the form works in any case
    return [];
  }
}

function countWord(text, word) {
  return text.split(word).length - 1;
}

function scoreEntry(entry, words) {
  const page = entry.page.toLowerCase();
  const heading = entry.heading.toLowerCase();
  const text = entry.text.toLowerCase();
  let score = 0;
  for (const word of words) {
    let points = heading.includes(word) ? 12 : 0;
    if (page.includes(word)) {
      points += heading === "" ? 18 : 6;
    }
    points += Math.min(countWord(text, word), 4);
    if (points === 0) {
      return 0;
    }
    score += points;
  }
  return score;
}

function appendMarked(parent, text, words) {
  const lower = text.toLowerCase();
  let at = 0;
  while (at < text.length) {
    let next = -1;
    let length = 0;
    for (const word of words) {
      const where = lower.indexOf(word, at);
      if (where >= 0 && (next < 0 || where < next)) {
        next = where;
        length = word.length;
      }
    }
    if (next < 0) {
      break;
    }
    parent.append(text.slice(at, next));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next, next + length);
    parent.append(mark);
    at = next + length;
  }
  parent.append(text.slice(at));
}

function showEntry(entry, words) {
  const link = document.createElement("a");
  link.href = entry.path;
  appendMarked(link, entry.heading ? entry.page + " › " + entry.heading : entry.page, words);
  const lower = entry.text.toLowerCase();
  const first = words.map((word) => lower.indexOf(word)).find((at) => at >= 0) ?? 0;
  const start = Math.max(first - 30, 0);
  const excerpt = document.createElement("small");
  appendMarked(excerpt, (start > 0 ? "…" : "") + entry.text.slice(start, start + 140), words);
  link.append(excerpt);
  return link;
}

async function search() {
  const query = field.value.trim();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    found.hidden = true;
    return;
  }
  const entries = await readIndex();
  if (field.value.trim() !== query) {
    return; // another key was pressed meanwhile
  }
  const results = entries
    .map((entry) => ({ entry, score: scoreEntry(entry, words) }))
    .filter((result) => result.score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 12);
  const count = document.createElement("p");
  count.setAttribute("role", "status");
  count.textContent = results.length === 0 ? "Nothing found." : results.length === 1 ? "One section" : `${results.length} sections`;
  found.replaceChildren(count, ...results.map((result) => showEntry(result.entry, words)));
  found.hidden = false;
}

field.addEventListener("focus", readIndex, { once: true });
field.addEventListener("input", search);

const form = field.form;
form.addEventListener("keydown", (event) => {
  const stops = [field, ...found.querySelectorAll("a")];
  const at = stops.indexOf(document.activeElement);
  if (event.key === "Escape" && !found.hidden) {
    found.hidden = true;
    field.focus();
    event.preventDefault();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !found.hidden && at >= 0) {
    const step = event.key === "ArrowDown" ? 1 : stops.length - 1;
    stops[(at + step) % stops.length].focus();
    event.preventDefault();
  }
});
found.addEventListener("click", (event) => {
  if (event.target.closest("a")) {
    found.hidden = true;
  }
});
document.addEventListener("click", (event) => {
  if (!form.contains(event.target)) {
    found.hidden = true;
  }
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    field.focus();
    field.select();
    event.preventDefault();
  }
});
