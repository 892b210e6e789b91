import { ApiError, isOffline } from '../api/errors';
import { useAccount } from '../data/account';
import { messageOf } from '../data/ErrorFault';
import { useConnection } from '../data/live';
import { text } from '../text/create';
import { Button } from '../ui/Button';
import { Stepper } from '../ui/Field';
import { Icon } from '../ui/Icon';
import styles from './Create.module.css';
import { affordableCount } from './price';
import type { ToolFormState } from './useToolForm';

/** useRefusal says why a run cannot start now, and what to do about it. */
function useRefusal(form: ToolFormState): { reason: string; hint?: string } | undefined {
  const { price, fault } = form;
  if (fault) {
    return isOffline(fault)
      ? { reason: text.offlineTitle, hint: text.offlineHint }
      : { reason: messageOf(fault), hint: traceOf(fault) };
  }
  if (price.data && !price.data.can_run && !price.isError) {
    return { reason: price.data.blocking_reason ?? text.fixInputs };
  }
  if (price.error instanceof ApiError && !price.isFetching) {
    return price.error.fields.length > 0 ? { reason: text.fixInputs } : { reason: price.error.message };
  }
  return undefined;
}

function traceOf(fault: unknown): string | undefined {
  return fault instanceof ApiError && fault.status >= 500 ? fault.body.trace_id : undefined;
}

/** isBlocked reports whether the button must not start a run now. */
export function isBlocked(form: ToolFormState): boolean {
  const { price, starting, wait, uploads } = form;
  const cannot = price.data !== undefined && !price.data.can_run && !price.isFetching;

  return starting || wait > 0 || uploads.sending.length > 0 || cannot;
}

/** FormFoot is the foot of the form: how many, Create, and what it costs or why it cannot run. */
export function FormFoot({ form }: { form: ToolFormState }) {
  const { tool, count, price, starting, wait } = form;
  const blocked = isBlocked(form);

  return (
    <div className={styles.foot}>
      <div className={styles.footRow}>
        {tool.num_results && tool.num_results.max > tool.num_results.min && (
          <Stepper
            label={text.howMany}
            value={count}
            min={tool.num_results.min}
            max={tool.num_results.max}
            onChange={form.setCount}
          />
        )}
        <Button
          kind="main"
          className={styles.create}
          aria-disabled={blocked || undefined}
          aria-keyshortcuts="Control+Enter"
          onClick={() => !blocked && form.create()}
        >
          {wait > 0 ? text.tryIn(wait) : starting ? text.creating : text.create}
          {wait === 0 && !starting && <kbd className="hide-small">Ctrl ↵</kbd>}
        </Button>
      </div>
      <Refusal form={form} />
      <PriceLine price={price.data} waiting={price.isPending} />
    </div>
  );
}

/** Refusal stands in place of the price if a run cannot start, with a button for the way out. */
export function Refusal({ form }: { form: ToolFormState }) {
  const { me, account, chooseAccount } = useAccount();
  const refusal = useRefusal(form);
  const { tool, count, price, uploads } = form;
  const personal = me.accounts[0];

  if (!refusal) {
    return uploads.sending.length > 0 ? <p className="small soft">{text.waitForFiles}</p> : null;
  }
  const { balance } = account;
  const fewer = price.data
    ? affordableCount(price.data, balance.tokens + balance.free_allowance_left, count, tool.num_results?.min ?? 1)
    : undefined;
  const own =
    account.kind === 'TEAM' && price.data && personal && personal.balance.tokens >= price.data.total_tokens
      ? personal
      : undefined;
  const poor = price.data?.can_run === false;

  return (
    <div className={styles.refusal} role="alert">
      <Icon name={isOffline(form.fault) ? 'offline' : 'alert'} />
      <div className="grow">
        <p className="strong">{refusal.reason}</p>
        {refusal.hint && <p className="small soft">{refusal.hint}</p>}
      </div>
      {poor && fewer !== undefined && (
        <Button small onClick={() => form.setCount(fewer)}>
          {text.makeFewer(fewer)}
        </Button>
      )}
      {poor && fewer === undefined && own && (
        <Button small onClick={() => chooseAccount(own.id)}>
          {text.useOwnAccount}
        </Button>
      )}
    </div>
  );
}

type PriceLineProps = { price: ToolFormState['price']['data']; waiting: boolean };

/** PriceLine says what a run costs, how long it takes, and what is left after it. */
function PriceLine({ price, waiting }: PriceLineProps) {
  const { account } = useAccount();
  const connection = useConnection();

  if (!price) {
    return <p className={styles.price}>{waiting && connection.open ? text.pricing : '\u00a0'}</p>;
  }
  if (!price.can_run) {
    return null;
  }
  return (
    <p className={styles.price} aria-live="polite">
      <span>
        <b className="num">{price.total_tokens === 0 ? text.free : text.price(price.total_tokens)}</b>
        {price.free_allowance_used > 0 && `, ${text.freePart(price.free_allowance_used)}`}
        {price.estimated_seconds !== null && `, ${text.about(price.estimated_seconds)}`}
      </span>
      <span className="num">{text.left(account.balance.tokens - price.total_tokens)}</span>
    </p>
  );
}
