import { useState } from 'react';
import { api } from '../api/client';
import { problemOf, useAction } from '../data/action';
import { type Budget, budgetKey, type Team } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Field, NumberInput, Switch, TextInput } from '../ui/Field';

/** BudgetForm sets what a team plans to spend in a month. */
export function BudgetForm({ team, budget, onClose }: { team: Team; budget: Budget | null; onClose: () => void }) {
  const [tokens, setTokens] = useState<number | undefined>(budget?.tokens);
  const [hard, setHard] = useState(budget?.hard ?? false);
  const [hook, setHook] = useState(budget?.webhook_url ?? '');
  const [tried, setTried] = useState(false);
  const wrong = !(tokens !== undefined && Number.isInteger(tokens) && tokens >= 1);

  const save = useAction(
    () =>
      api.PUT('/teams/{team_id}/budget', {
        params: { path: { team_id: team.id } },
        body: { tokens: tokens ?? 0, hard, webhook_url: hook.trim() || null },
      }),
    { done: () => text.budgetSaved, refresh: [budgetKey(team.id)], onDone: onClose },
  );
  const submit = () => {
    setTried(true);
    if (!wrong) {
      save.run();
    }
  };

  return (
    <FormDialog
      open
      title={budget ? text.budgetChangeOf(team.name) : text.budgetSetFor(team.name)}
      submit={text.save}
      action={save}
      fields={['tokens', 'webhook_url']}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label={text.budgetTokens}
        problem={(tried && wrong ? text.budgetTokensWrong : undefined) ?? problemOf(save.error, 'tokens')}
      >
        {(attributes) => <NumberInput min={1} step={1} {...attributes} value={tokens} onChange={setTokens} />}
      </Field>
      <Switch
        label={text.budgetHard}
        help={text.budgetHardHelp}
        checked={hard}
        onChange={(event) => setHard(event.target.checked)}
      />
      <Field label={text.budgetHook} help={text.budgetHookHelp} problem={problemOf(save.error, 'webhook_url')}>
        {(attributes) => (
          <TextInput inputMode="url" {...attributes} value={hook} onChange={(event) => setHook(event.target.value)} />
        )}
      </Field>
    </FormDialog>
  );
}

/** RemoveBudgetDialog removes the budget of a team. */
export function RemoveBudgetDialog({ team, onClose }: { team: Team | undefined; onClose: () => void }) {
  const remove = useAction(
    (one: Team) => api.DELETE('/teams/{team_id}/budget', { params: { path: { team_id: one.id } } }),
    { done: () => text.budgetRemoved, refresh: [['budget']], onDone: onClose },
  );

  return (
    <FormDialog
      open={team !== undefined}
      title={text.budgetRemoveTitle(team?.name ?? '')}
      submit={text.budgetRemove}
      action={remove}
      danger
      onSubmit={() => team && remove.run(team)}
      onClose={onClose}
    >
      <p>{text.budgetRemoveWhy}</p>
    </FormDialog>
  );
}
