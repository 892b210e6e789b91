import { AtelierError } from './errors.js';
import { isPassing } from './events.js';
import { Pages } from './pages.js';
import { asFailure, once, sleep } from './retry.js';
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
export async function waitForApproval(auth: Auth, options: SignInOptions): Promise<SignInResult> {
  const codes = await auth.startDevice({ plugin_kind: options.plugin_kind }, options);
  await options.onCode(codes);
  const end = Date.now() + codes.expires_in * 1000;
  let interval = codes.interval;

  for (;;) {
    await sleep(interval, options.signal);
    if (Date.now() > end) {
      throw new AtelierError({
        code: 'DEVICE_CODE_EXPIRED',
        message: 'Nobody approved the sign-in in time.',
        status: 410,
      });
    }
    try {
      return await auth.pollDevice(codes.device_code, options);
    } catch (error) {
      options.signal?.throwIfAborted();
      const failure = asFailure(error);
      if (failure.code === 'SLOW_DOWN') {
        const wanted = Number(failure.details.interval);
        interval = wanted > 0 ? wanted : interval + 5;
      } else if (failure.status === 0 && isPassing(failure)) {
        // RFC 8628, section 3.5: poll less often when the connection fails.
        interval = Math.min(60, interval * 2);
      } else if (failure.code !== 'AUTHORIZATION_PENDING' && !isPassing(failure)) {
        throw failure;
      }
      interval = Math.max(interval, failure.retry_after ?? 0);
    }
  }
}

/** Auth signs devices in and out, step by step (`/auth`, `/devices`, `/sessions`); the client's signIn does it whole. */
export class Auth {
  constructor(private readonly transport: Transport) {}

  /** startDevice begins a sign-in. */
  startDevice(draft: Schemas['DeviceStart'] = {}, options: CallOptions = {}): Promise<Schemas['DeviceCodes']> {
    return this.transport.call('startDevice', { json: draft, options });
  }

  /** pollDevice asks once for the tokens. The service hands them out exactly once, so an answer is never repeated. */
  pollDevice(device_code: string, options: CallOptions = {}): Promise<SignInResult> {
    return this.transport.call('pollDeviceByBody', { json: { device_code }, retry: once, options });
  }

  /** refreshToken returns a new ID token. A client with a store does so by itself. */
  refreshToken(refresh_token: string, options: CallOptions = {}): Promise<Schemas['Tokens']> {
    return this.transport.call('refreshToken', { json: { refresh_token }, options });
  }

  /** revokeDevice signs a device of the person out; without an id, this one. */
  revokeDevice(device_id?: string, options: CallOptions = {}): Promise<undefined> {
    const headers: Record<string, string> = device_id === undefined ? {} : { 'X-Device-Id': device_id };
    return this.transport.call('revokeDevice', { headers, options });
  }

  /** endSession signs a browser of the person out. */
  endSession(session_id: string, options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('endSession', { path: { session_id }, options });
  }

  /** signOutEverywhere signs out every device and browser of the person. */
  signOutEverywhere(options: CallOptions = {}): Promise<undefined> {
    return this.transport.call('signOutEverywhere', { options });
  }

  /** listDevices lists the devices and browsers of the person. */
  listDevices(query: Query<'listDevices'> = {}, options: CallOptions = {}): Pages<Schemas['Device']> {
    return new Pages((cursor) => this.transport.call('listDevices', { query: { ...query, cursor }, options }));
  }
}
