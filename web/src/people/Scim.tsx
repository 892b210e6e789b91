import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { ApiError } from '../api/errors';
import { useAction } from '../data/action';
import type { Company } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { QueryView } from '../data/ListView';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { Button } from '../ui/Button';
import { CopyCode } from '../ui/CopyCode';
import { Facts } from '../ui/Figures';
import { formatAgo, formatDay } from '../ui/format';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Denied } from './Denied';
import { keys, useCompanyAccess } from './queries';

/** Scim shows whether an identity provider manages the company's people, and deletes its token. */
export function Scim({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const plan = company.plan === 'ENTERPRISE' ? undefined : text.scimPlan;
  const refused = access.refuse('MANAGE_MEMBERS') ?? plan;
  const [leaving, setLeaving] = useState(false);
  const path = { params: { path: { company_id: company.id } } };
  const token = useQuery({
    queryKey: keys.scim(company.id),
    enabled: !refused,
    queryFn: async () => {
      try {
        return dataOf(await api.GET('/companies/{company_id}/scim-token', path));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) {
          return null;
        }
        throw error;
      }
    },
  });
  const remove = useAction(() => api.DELETE('/companies/{company_id}/scim-token', path), {
    done: () => text.scimDeleted,
    refresh: [keys.scim(company.id)],
    onDone: () => setLeaving(false),
  });
  const actions = token.data && (
    <Button kind="danger" onClick={() => setLeaving(true)}>
      {text.scimDelete}
    </Button>
  );

  return (
    <Panel title={text.scim} actions={actions}>
      <div className="stack">
        <p className="soft">{text.scimWhy}</p>
        <Denied reason={refused}>
          <QueryView query={token} height={120}>
            {(data) =>
              data ? (
                <Facts
                  facts={[
                    [text.scimUrl, <code key="url">{data.url}</code>],
                    [text.scimHint, <code key="hint">…{data.hint}</code>],
                    [text.scimMade, formatDay(data.created)],
                    [text.scimUsed, data.last_used ? formatAgo(data.last_used) : shared.never],
                  ]}
                />
              ) : (
                <Empty title={text.scimNone} />
              )
            }
          </QueryView>
          <Notice icon="lock">{text.scimMakeWhy}</Notice>
          <CopyCode text={`atelier admin scim-token create --company ${company.id}`} label={text.scimCommand} />
        </Denied>
      </div>
      <FormDialog
        open={leaving}
        title={text.scimDeleteTitle}
        submit={text.scimDelete}
        action={remove}
        danger
        onSubmit={() => remove.run()}
        onClose={() => setLeaving(false)}
      >
        <p>{text.scimDeleteWhy}</p>
      </FormDialog>
    </Panel>
  );
}
