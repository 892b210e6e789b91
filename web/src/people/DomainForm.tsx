import { useState } from 'react';
import { api } from '../api/client';
import { problemOf, useAction } from '../data/action';
import type { Company } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { text } from '../text/people';
import { Field, TextInput } from '../ui/Field';
import { isDomain } from './permissions';
import { keys } from './queries';
import { bodyOfTeam, noTeam, TeamFields } from './TeamFields';

/** DomainForm adds a mail domain to a company. */
export function DomainForm({ company, onClose }: { company: Company; onClose: () => void }) {
  const [domain, setDomain] = useState('');
  const [team, setTeam] = useState(noTeam);
  const [tried, setTried] = useState(false);
  const wrong = tried && !isDomain(domain) ? text.domainNameWrong : undefined;

  const add = useAction(
    () =>
      api.POST('/companies/{company_id}/domains', {
        params: { path: { company_id: company.id } },
        body: { domain, ...bodyOfTeam(team) },
      }),
    { done: () => text.domainAdded, refresh: [keys.domains(company.id)], onDone: onClose },
  );
  const submit = () => {
    setTried(true);
    if (isDomain(domain)) {
      add.run();
    }
  };

  return (
    <FormDialog
      open
      title={text.domainAdd}
      submit={text.domainAdd}
      action={add}
      fields={['domain', 'team_id', 'team_role']}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label={text.domainName} problem={wrong ?? problemOf(add.error, 'domain')}>
        {(attributes) => (
          <TextInput
            inputMode="url"
            autoComplete="off"
            {...attributes}
            value={domain}
            onChange={(event) => setDomain(event.target.value.trim().toLowerCase())}
          />
        )}
      </Field>
      <TeamFields
        company={company}
        label={text.domainTeam}
        none={text.domainCompanyOnly}
        value={team}
        error={add.error}
        onChange={setTeam}
      />
    </FormDialog>
  );
}
