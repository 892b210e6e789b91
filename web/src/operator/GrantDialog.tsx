import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { meKey } from '../data/account';
import { problemOf, useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/operator';
import { Field, NumberInput, TextArea } from '../ui/Field';

/** GrantTarget is an account that can receive tokens. */
export type GrantTarget = { id: string; name: string; tokens: number };

/** GrantDialog gives tokens to an account, or takes them back. */
export function GrantDialog({ target, onClose }: { target: GrantTarget | undefined; onClose: () => void }) {
  return target ? <GrantForm target={target} onClose={onClose} /> : null;
}

function GrantForm({ target, onClose }: { target: GrantTarget; onClose: () => void }) {
  const [tokens, setTokens] = useState<number>();
  const [reason, setReason] = useState('');
  const [tried, setTried] = useState(false);
  // The key belongs to this form: pressing the button again after a lost answer grants nothing twice.
  const [key] = useState(() => crypto.randomUUID());

  const grant = useAction(
    async () =>
      dataOf(
        await api.POST('/operator/grants', {
          params: { header: { 'Idempotency-Key': key } },
          body: { account_id: target.id, tokens: tokens ?? 0, reason: reason.trim() },
        }),
      ),
    {
      done: (result) => text.granted(result.tokens, target.name, result.balance),
      refresh: [['operator'], meKey, ['ledger']],
      onDone: onClose,
    },
  );
  const taking = (tokens ?? 0) < 0;
  const noTokens = tried && !tokens ? text.grantZero : undefined;
  const noReason = tried && !reason.trim() ? text.grantNoReason : undefined;

  const submit = () => {
    setTried(true);
    if (tokens && reason.trim()) {
      grant.run();
    }
  };

  return (
    <FormDialog
      open
      title={text.grantTitle(target.name)}
      submit={taking ? text.takeSubmit : text.grantSubmit}
      action={grant}
      fields={['tokens', 'reason']}
      danger={taking}
      onSubmit={submit}
      onClose={onClose}
    >
      <p className="soft">{text.grantNow(target.tokens)}</p>
      <Field
        label={text.grantTokens}
        help={text.grantTokensHelp}
        problem={noTokens ?? problemOf(grant.error, 'tokens')}
      >
        {(attributes) => <NumberInput step={1} {...attributes} value={tokens} onChange={setTokens} />}
      </Field>
      <Field
        label={text.grantReason}
        help={text.grantReasonHelp}
        problem={noReason ?? problemOf(grant.error, 'reason')}
      >
        {(attributes) => (
          <TextArea
            maxLength={500}
            {...attributes}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
    </FormDialog>
  );
}
