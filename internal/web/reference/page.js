// Shows the OpenAPI document of this server with Swagger UI.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const applyColorScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", applyColorScheme);
applyColorScheme();

SwaggerUIBundle({
  url: "/api/v2/openapi.json",
  dom_id: "#reference",
  deepLinking: true, // each operation has its own URL
  defaultModelsExpandDepth: 0, // the list of schemas is collapsed initially
  validatorUrl: null, // never send the document to a validator on the internet
});
