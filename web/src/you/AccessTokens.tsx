import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { useAction } from '../data/action';
import { FormDialog } from '../data/FormDialog';
import { ListView } from '../data/ListView';
import { useList } from '../data/list';
import { type AccessToken, TokenTable } from '../data/TokenTable';
import { text } from '../text/you';
import { ButtonLink } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Notice } from '../ui/Notice';
import { Panel } from '../ui/Panel';
import { Empty } from '../ui/States';

const tokensKey = ['access-tokens'];

/** AccessTokens lists the tokens that act for the person, and deletes them. Making one is left to a page without scripts. */
export function AccessTokens() {
  const list = useList(tokensKey, async (cursor) =>
    dataOf(await api.GET('/access-tokens', { params: { query: { limit: 50, cursor } } })),
  );
  const [leaving, setLeaving] = useState<AccessToken>();
  const remove = useAction(
    (token: AccessToken) => api.DELETE('/access-tokens/{token_id}', { params: { path: { token_id: token.id } } }),
    { done: () => text.tokenDeleted, refresh: [tokensKey], onDone: () => setLeaving(undefined) },
  );
  const make = (
    <ButtonLink kind="main" icon="key" href="/tokens" external>
      {text.tokenMake}
    </ButtonLink>
  );

  return (
    <Panel title={text.tokens} actions={make}>
      <div className="stack">
        <p className="soft">{text.tokensWhy}</p>
        <ListView list={list} empty={<Empty title={text.tokenEmpty}>{text.tokenEmptyWhy}</Empty>}>
          {(rows) => (
            <TokenTable
              label={text.tokens}
              tokens={rows}
              noteOf={(token) => token.company_id && <Tag>{text.tokenCompany}</Tag>}
              onDelete={setLeaving}
            />
          )}
        </ListView>
        <Notice icon="lock">{text.tokenMakeWhy}</Notice>
      </div>
      <FormDialog
        open={leaving !== undefined}
        title={text.tokenDeleteTitle(leaving?.name ?? '')}
        submit={text.tokenDelete}
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
