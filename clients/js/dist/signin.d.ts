import { Pages } from './pages.js';
import type { components } from './schema.js';
import type { CallOptions, Query, Transport } from './transport.js';
type Schemas = components['schemas'];
/** SignInResult is what a device gets when its person has approved the sign-in. */
export type SignInResult = Schemas['SignInResult'];
/** SignInOptions are the options of signIn. */
export interface SignInOptions extends CallOptions {
    /** Shows the person the code and the page where they approve it. */
    onCode: (codes: Schemas['DeviceCodes']) => void | Promise<void>;
    /** The kind of app, shown to the person who approves, such as `blender`. */
    plugin_kind?: string;
}
/** waitForApproval goes through the device flow (RFC 8628) and returns the tokens. */
export declare function waitForApproval(auth: Auth, options: SignInOptions): Promise<SignInResult>;
/** Auth signs devices in and out, step by step (`/auth`, `/devices`, `/sessions`); the client's signIn does it whole. */
export declare class Auth {
    private readonly transport;
    constructor(transport: Transport);
    /** startDevice begins a sign-in. */
    startDevice(draft?: Schemas['DeviceStart'], options?: CallOptions): Promise<Schemas['DeviceCodes']>;
    /** pollDevice asks once for the tokens. The service hands them out exactly once, so an answer is never repeated. */
    pollDevice(device_code: string, options?: CallOptions): Promise<SignInResult>;
    /** refreshToken returns a new ID token. A client with a store does so by itself. */
    refreshToken(refresh_token: string, options?: CallOptions): Promise<Schemas['Tokens']>;
    /** revokeDevice signs a device of the person out; without an id, this one. */
    revokeDevice(device_id?: string, options?: CallOptions): Promise<undefined>;
    /** endSession signs a browser of the person out. */
    endSession(session_id: string, options?: CallOptions): Promise<undefined>;
    /** signOutEverywhere signs out every device and browser of the person. */
    signOutEverywhere(options?: CallOptions): Promise<undefined>;
    /** listDevices lists the devices and browsers of the person. */
    listDevices(query?: Query<'listDevices'>, options?: CallOptions): Pages<Schemas['Device']>;
}
export {};
