import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { beginChange, rereadQueries } from './reread';

/** follow shows the answers of a service whose state changes while it is read. */
function follow(cache: QueryClient) {
  const service = { state: 'old', reads: 0 };
  const answers: Array<() => void> = [];
  const observer = new QueryObserver(cache, {
    queryKey: ['ledger', 'entries'],
    queryFn: () => {
      service.reads++;
      const answer = service.state; // the service reads its state now, and the answer takes its time
      return new Promise<string>((done) => answers.push(() => done(answer)));
    },
  });
  const stop = observer.subscribe(() => {});
  return { service, answers, observer, stop };
}

test('a change during the first read is not missed', async () => {
  const cache = new QueryClient();
  const { service, answers, observer, stop } = follow(cache);
  service.state = 'new';
  const read = rereadQueries(cache, { queryKey: ['ledger'] });
  expect(service.reads).toBe(1);
  answers[0]?.();
  await expect.poll(() => service.reads).toBe(2);
  answers[1]?.();
  await read;
  expect(observer.getCurrentResult().data).toBe('new');
  stop();
});

test('a query that was read is read again once', async () => {
  const cache = new QueryClient();
  const { service, answers, observer, stop } = follow(cache);
  answers[0]?.();
  await expect.poll(() => observer.getCurrentResult().data).toBe('old');
  service.state = 'new';
  const read = rereadQueries(cache, { queryKey: ['ledger'] });
  answers[1]?.();
  await read;
  expect(service.reads).toBe(2);
  expect(observer.getCurrentResult().data).toBe('new');
  stop();
});

test('a read that began during a change is repeated when the service has the change', async () => {
  const cache = new QueryClient();
  const { service, answers, observer, stop } = follow(cache);
  answers[0]?.();
  await expect.poll(() => observer.getCurrentResult().data).toBe('old');
  const endChange = beginChange(cache, { queryKey: ['ledger'] });
  void observer.refetch();
  await expect.poll(() => service.reads).toBe(2);
  service.state = 'new';
  const end = endChange();
  await expect.poll(() => service.reads).toBe(3);
  answers[1]?.();
  answers[2]?.();
  await end;
  expect(observer.getCurrentResult().data).toBe('new');
  stop();
});

test('a read that began and ended during a change is repeated too', async () => {
  const cache = new QueryClient();
  const { service, answers, observer, stop } = follow(cache);
  const endChange = beginChange(cache, { queryKey: ['ledger'] });
  void observer.refetch();
  await expect.poll(() => service.reads).toBe(2);
  answers[1]?.();
  await expect.poll(() => observer.getCurrentResult().data).toBe('old');
  service.state = 'new';
  const end = endChange();
  await expect.poll(() => service.reads).toBe(3);
  answers[2]?.();
  await end;
  expect(observer.getCurrentResult().data).toBe('new');
  stop();
});

test('a change during which nothing is read is read when it is shown', async () => {
  const cache = new QueryClient();
  const { service, answers, observer, stop } = follow(cache);
  answers[0]?.();
  await expect.poll(() => observer.getCurrentResult().data).toBe('old');
  await new Promise((done) => setTimeout(done, 5));
  await beginChange(cache, { queryKey: ['ledger'] })();
  expect(service.reads).toBe(1);
  expect(observer.getCurrentResult().isStale).toBe(true);
  stop();
});
