import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { useAction } from '../data/action';
import type { Company } from '../data/companies';
import { FormDialog } from '../data/FormDialog';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { type AccessToken, TokenTable } from '../data/TokenTable';
import { text } from '../text/people';
import { text as shared } from '../text/shared';
import { ButtonLink } from '../ui/Button';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Denied } from './Denied';
import { keys, useCompanyAccess, useMemberNames } from './queries';

/** CompanyTokens lists the access tokens of a company, and deletes them. Making one is left to a page without scripts. */
export function CompanyTokens({ company }: { company: Company }) {
  const access = useCompanyAccess(company);
  const refused = access.refuse('MANAGE_API_TOKENS');
  const names = useMemberNames(company.id, access.has('MANAGE_MEMBERS'));
  const [leaving, setLeaving] = useState<AccessToken>();
  const list = useList(
    keys.tokens(company.id),
    async (cursor) =>
      dataOf(
        await api.GET('/companies/{company_id}/access-tokens', {
          params: { path: { company_id: company.id }, query: { limit: 50, cursor } },
        }),
      ),
    { enabled: !refused },
  );
  const remove = useAction(
    (token: AccessToken) =>
      api.DELETE('/companies/{company_id}/access-tokens/{token_id}', {
        params: { path: { company_id: company.id, token_id: token.id } },
      }),
    {
      done: () => text.tokenDeleted,
      refresh: [keys.tokens(company.id)],
      onDone: () => setLeaving(undefined),
    },
  );
  const make = !refused && (
    <ButtonLink kind="main" icon="key" href={`/companies/${company.id}/tokens`} external>
      {text.tokensMake}
    </ButtonLink>
  );

  return (
    <Panel title={text.tokens} actions={make}>
      <Denied reason={refused}>
        <div className="stack">
          <p className="soft">{text.tokensWhy}</p>
          <ListView list={list} empty={<Empty title={text.tokensEmpty} />}>
            {(rows) => (
              <TokenTable
                label={text.tokens}
                tokens={rows}
                personOf={(token) => names.nameOf(token.uid)}
                onDelete={setLeaving}
              />
            )}
          </ListView>
        </div>
      </Denied>
      <FormDialog
        open={leaving !== undefined}
        title={text.tokenDeleteTitle(leaving?.name ?? '')}
        submit={shared.delete}
        action={remove}
        danger
        onSubmit={() => leaving && remove.run(leaving)}
        onClose={() => setLeaving(undefined)}
      >
        <p>{text.tokenDeleteWhy}</p>
      </FormDialog>
    </Panel>
  );
}
