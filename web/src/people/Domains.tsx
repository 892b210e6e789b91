import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { useAction } from '../data/action';
import { type Company, useTeams } from '../data/companies';
import { ErrorFault } from '../data/ErrorFault';
import { FormDialog } from '../data/FormDialog';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { CopyCode } from '../ui/CopyCode';
import { formatDay } from '../ui/format';
import { Panel } from '../ui/Panel';
import { ReasonButton } from '../ui/ReasonButton';
import { Empty } from '../ui/States';
import { Denied } from './Denied';
import { DomainForm } from './DomainForm';
import { keys, useCompanyAccess } from './queries';
import styles from './RoleMatrix.module.css';

type Domain = Schemas['Domain'];

/** Domains lists the mail domains of a company, with the steps that prove its ownership. */
export function Domains({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const refused = access.refuse('MANAGE_MEMBERS');
  const [adding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<Domain>();
  const domains = useQuery({
    queryKey: keys.domains(company.id),
    enabled: !refused,
    queryFn: async () =>
      dataOf(await api.GET('/companies/{company_id}/domains', { params: { path: { company_id: company.id } } })).data,
  });
  const remove = useAction(
    (domain: Domain) =>
      api.DELETE('/companies/{company_id}/domains/{domain}', {
        params: { path: { company_id: company.id, domain: domain.domain } },
      }),
    {
      done: () => text.domainRemoved,
      refresh: [keys.domains(company.id)],
      onDone: () => setLeaving(undefined),
    },
  );
  const add = (
    <ReasonButton kind="main" icon="plus" reason={refused} onClick={() => setAdding(true)}>
      {text.domainAdd}
    </ReasonButton>
  );

  return (
    <>
      <Panel title={text.domains} actions={add}>
        <Denied reason={refused}>
          <div className="stack">
            <p className="soft">{text.domainsWhy}</p>
            <QueryView query={domains} height={80}>
              {(rows) => rows.length === 0 && <Empty title={text.domainsEmpty} />}
            </QueryView>
          </div>
        </Denied>
      </Panel>
      {domains.data?.map((domain) => (
        <DomainPanel key={domain.domain} company={company} domain={domain} onRemove={() => setLeaving(domain)} />
      ))}
      {adding && <DomainForm company={company} onClose={() => setAdding(false)} />}
      <FormDialog
        open={leaving !== undefined}
        title={text.domainRemoveTitle(leaving?.domain ?? '')}
        submit={text.domainRemove}
        action={remove}
        danger
        onSubmit={() => leaving && remove.run(leaving)}
        onClose={() => setLeaving(undefined)}
      >
        <p>{text.domainRemoveWhy}</p>
      </FormDialog>
    </>
  );
}

type PanelProps = { company: Company; domain: Domain; onRemove: () => void };

function DomainPanel({ company, domain, onRemove }: PanelProps) {
  const teams = useTeams(company.id);
  const team = teams.data?.find((one) => one.id === domain.team_id)?.name ?? domain.team_id;
  const check = useAction(
    () =>
      api.POST('/companies/{company_id}/domains/{domain}/verify', {
        params: { path: { company_id: company.id, domain: domain.domain } },
      }),
    { done: () => text.domainChecked(domain.domain), refresh: [keys.domains(company.id)] },
  );
  const actions = (
    <>
      <Tag tone={domain.verified ? 'good' : 'warn'}>
        {domain.verified ? text.domainVerified(formatDay(domain.verified)) : text.domainWaiting}
      </Tag>
      <Button small kind="danger" aria-label={text.domainRemoveOne(domain.domain)} onClick={onRemove}>
        {text.domainRemove}
      </Button>
    </>
  );

  return (
    <Panel title={domain.domain} actions={actions}>
      {team && <p className="small soft">{text.domainJoins(team, domain.team_role ?? 'member')}</p>}
      {!domain.verified && (
        <section className={styles.steps} aria-label={text.domainSteps}>
          <h3>{text.domainSteps}</h3>
          <p>{text.domainStep1}</p>
          <CopyCode text={domain.record} label={text.domainRecord} />
          <p>{text.domainStep2}</p>
          <CopyCode text={domain.proof} label={text.domainProof} />
          <p>{text.domainStep3}</p>
          {check.error !== null && <ErrorFault error={check.error} />}
          <div>
            <Button kind="main" disabled={check.busy || check.wait > 0} onClick={() => check.run()}>
              {check.wait > 0 ? shared.waitSeconds(check.wait) : text.domainCheck}
            </Button>
          </div>
        </section>
      )}
    </Panel>
  );
}
