// Shows times in the browser's time zone and copies secrets. Every page works
// without this file.
"use strict";

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// The page contains times in UTC. A relative time ("3 minutes ago") is kept, with the exact
// local time as its title.
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

// Browsers disable navigator.clipboard on pages without TLS.
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
    status.textContent = copied ? "Copied." : "Your browser does not allow copying. The token is selected: copy it yourself.";
  });
}
