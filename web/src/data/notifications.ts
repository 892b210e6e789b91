import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { text } from '../text/notifications';
import { useAccount } from './account';
import { useLiveEvents } from './live';
import { getPreferences } from './preferences';
import type { Run } from './runs';

// Each tab that is seen holds this lock together with the others. A tab in the background asks who holds it, so that
// nobody is told about a run while another tab of the studio is in front.
const seenLock = 'atelier-seen';

/** Runs that ended longer ago than this come from a stream that was opened again, and are no news. */
const newsTime = 60_000;

const told = new Set<string>();

/** hasNotifications reports whether this browser can show notifications. */
export const hasNotifications = () => 'Notification' in globalThis;

/** askForNotifications asks the browser for its permission, and returns whether it was given. */
export async function askForNotifications(): Promise<boolean> {
  return hasNotifications() && (await Notification.requestPermission()) === 'granted';
}

/** isNews reports whether a person should be told about a run: it is theirs, has just ended, and was not told before. */
export function isNews(run: Pick<Run, 'status' | 'uid' | 'finished'>, uid: string, now: number): boolean {
  return (
    run.status !== 'pending' &&
    run.uid === uid &&
    run.finished !== null &&
    now - new Date(run.finished).getTime() < newsTime
  );
}

async function isSeen(): Promise<boolean> {
  const locks = await navigator.locks.query();

  return locks.held?.some((lock) => lock.name === seenLock) ?? false;
}

/** holdWhileSeen holds the lock of seen tabs while this tab is in front, until the signal aborts. */
function holdWhileSeen(signal: AbortSignal): void {
  let release = () => {};

  const update = () => {
    release();
    release = () => {};
    if (document.visibilityState === 'visible' && !signal.aborted) {
      const hold = () =>
        new Promise<void>((resolve) => {
          release = resolve;
        });
      void navigator.locks.request(seenLock, { mode: 'shared' }, hold);
    }
  };

  update();
  document.addEventListener('visibilitychange', update, { signal });
  signal.addEventListener('abort', update);
}

/** useRunNotifications shows a notification when a run of the person ends while no tab of the studio is seen. */
export function useRunNotifications(): void {
  const { me, linkTo } = useAccount();
  const [, navigate] = useLocation();

  useEffect(() => {
    const stop = new AbortController();
    holdWhileSeen(stop.signal);
    return () => stop.abort();
  }, []);

  const tell = async (run: Run) => {
    if (told.has(run.request_id) || (await isSeen())) {
      return;
    }
    told.add(run.request_id);
    const title = run.status === 'succeeded' ? text.succeeded(run.tool_name) : text.failed(run.tool_name);
    const body = run.error?.message ?? run.prompt ?? '';

    // The tag makes the notifications of several tabs about the same run one.
    const notification = new Notification(title, {
      body,
      tag: run.request_id,
      icon: run.outputs[0]?.thumb_url ?? undefined,
    });
    notification.onclick = () => {
      notification.close();
      focus();
      navigate(linkTo('/'));
    };
  };

  useLiveEvents((event) => {
    if (event.event !== 'run' || !getPreferences().notifications || !hasNotifications()) {
      return;
    }
    const run = JSON.parse(event.data) as Run;
    if (Notification.permission === 'granted' && run.status !== 'cancelled' && isNews(run, me.user.uid, Date.now())) {
      // Some browsers of telephones refuse notifications of pages; the run is in the feed all the same.
      tell(run).catch(() => {});
    }
  });
}
