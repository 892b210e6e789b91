/**
 * The client of Atelier's API, /api/v2, for Node and browsers. `atelier-client/node` adds files: a token store, uploads
 * from paths and downloads to paths.
 *
 * @packageDocumentation
 */
export { AccessTokens, Library, Me } from './account.js';
export { type AccountEvent, AccountEvents, type BoardEvent, Boards, type ChangeOptions } from './boards.js';
export { Client, type ClientOptions } from './client.js';
export { Companies, Invitations, Reports, Teams } from './companies.js';
export { MemoryStore, type TokenStore, type Tokens } from './credentials.js';
export { type DownloadOptions, Downloads, type Progress, type StoredFile } from './downloads.js';
export { AtelierError, type ErrorCode, RunFailedError } from './errors.js';
export type { ServerEvent, StreamOptions } from './events.js';
export { Flows } from './flows.js';
export { OperatorCalls, Service } from './operator.js';
export { type Page, Pages } from './pages.js';
export type { RetryOptions } from './retry.js';
export {
  type CreatedRun,
  hasEnded,
  type InputValue,
  libraryInput,
  type Output,
  type Run,
  type RunEvent,
  type RunRequest,
  Runs,
  uploadInput,
  type WaitOptions,
} from './runs.js';
export type { components, operations } from './schema.js';
export { type Hash, SHA256 } from './sha256.js';
export { Auth, type SignInOptions, type SignInResult } from './signin.js';
export { type Tool, type ToolDetail, Tools } from './tools.js';
export type { CallOptions, CreateOptions, Fetch } from './transport.js';
export { type FileSource, type Upload, type UploadOptions, Uploads } from './uploads.js';
export {
  type HeaderSource,
  type VerifiedEvent,
  type VerifyOptions,
  verifyWebhook,
  type WebhookEvent,
  type WebhookHandlerOptions,
  Webhooks,
  webhookHandler,
} from './webhooks.js';
