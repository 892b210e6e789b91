import { useState } from 'react';
import { api } from '../api/client';
import { meKey } from '../data/account';
import { hasUnnamedProblem, problemOf, useAction } from '../data/action';
import { type Company, companiesKey } from '../data/companies';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Field, Select, TextInput } from '../ui/Field';
import { Facts } from '../ui/Figures';
import { formatDay } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { useCompanyAccess } from './queries';

/** CompanySettings shows a company, and changes its name and time zone. */
export function CompanySettings({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const refused = access.refuse('MANAGE_MEMBERS');

  return (
    <>
      <Panel title={text.company}>
        <Facts
          facts={[
            [text.companyPlan, company.plan],
            [text.yourRole, company.role],
            [text.companySince, formatDay(company.created)],
            [text.companyId, <code key="id">{company.id}</code>],
          ]}
        />
      </Panel>
      <Panel title={text.settings}>
        {refused ? (
          <div className="stack">
            <Facts
              facts={[
                [text.companyName, company.name],
                [text.companyZone, company.time_zone],
              ]}
            />
            <Notice icon="lock">{refused}</Notice>
          </div>
        ) : (
          <SettingsForm company={company} />
        )}
      </Panel>
    </>
  );
}

function SettingsForm({ company }: { company: Company }) {
  const [name, setName] = useState(company.name);
  const [zone, setZone] = useState(company.time_zone);
  const zones = [...new Set([company.time_zone, 'UTC', ...Intl.supportedValuesOf('timeZone')])].toSorted();
  const missing = name.trim() ? undefined : text.companyNameWrong;
  const same = name.trim() === company.name && zone === company.time_zone;

  const save = useAction(
    () =>
      api.PATCH('/companies/{company_id}', {
        params: { path: { company_id: company.id } },
        body: {
          name: name.trim() === company.name ? null : name.trim(),
          time_zone: zone === company.time_zone ? null : zone,
        },
      }),
    { done: () => text.companySaved, refresh: [companiesKey, meKey, ['report']] },
  );

  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      <Field label={text.companyName} problem={missing ?? problemOf(save.error, 'name')}>
        {(attributes) => (
          <TextInput maxLength={100} {...attributes} value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
      <Field label={text.companyZone} help={text.companyZoneHelp} problem={problemOf(save.error, 'time_zone')}>
        {(attributes) => (
          <Select {...attributes} value={zone} onChange={(event) => setZone(event.target.value)}>
            {zones.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {hasUnnamedProblem(save.error, ['name', 'time_zone']) && <ErrorFault error={save.error} />}
      <div>
        <Button type="submit" kind="main" disabled={same || Boolean(missing) || save.busy || save.wait > 0}>
          {save.wait > 0 ? shared.waitSeconds(save.wait) : text.save}
        </Button>
      </div>
    </form>
  );
}
