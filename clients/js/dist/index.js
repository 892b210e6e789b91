/**
 * The client of Atelier's API, /api/v2, for Node and browsers. `atelier-client/node` adds files: a token store, uploads
 * from paths and downloads to paths.
 *
 * @packageDocumentation
 */
export { AccessTokens, Library, Me } from './account.js';
export { AccountEvents, Boards } from './boards.js';
export { Client } from './client.js';
export { Companies, Invitations, Reports, Teams } from './companies.js';
export { MemoryStore } from './credentials.js';
export { Downloads } from './downloads.js';
export { AtelierError, RunFailedError } from './errors.js';
export { Flows } from './flows.js';
export { OperatorCalls, Service } from './operator.js';
export { Pages } from './pages.js';
export { hasEnded, libraryInput, Runs, uploadInput, } from './runs.js';
export { SHA256 } from './sha256.js';
export { Auth } from './signin.js';
export { Tools } from './tools.js';
export { Uploads } from './uploads.js';
export { verifyWebhook, Webhooks, webhookHandler, } from './webhooks.js';
