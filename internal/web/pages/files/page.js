// What pages gain where scripts run. Every page works without this file.
"use strict";

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// Times are UTC in the page. Relative ones ("3 minutes ago") stay, with the
// exact time as their title.
for (const time of document.querySelectorAll("time[datetime]")) {
  const local = clock.format(new Date(time.dateTime));
  if (time.title) {
    time.title = local;
  } else {
    time.title = time.textContent;
    time.textContent = local;
  }
}

function select(field) {
  getSelection().selectAllChildren(field);
}

// Browsers keep navigator.clipboard from pages without TLS.
async function copy(field) {
  try {
    await navigator.clipboard.writeText(field.textContent);
    return true;
  } catch {
    select(field);
    return document.execCommand("copy");
  }
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.dataset.copy);
  const status = document.getElementById(button.dataset.copy + "-status");
  select(field);
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(field);
    select(field);
    status.textContent = copied ? "Copied." : "Your browser does not let us copy. It is selected: copy it yourself.";
  });
}
