import type { ReactNode } from 'react';
import type { Schemas } from '../api/client';
import { text } from '../text/shared';
import { Button } from '../ui/Button';
import { formatAgo, formatDay } from '../ui/format';
import { type Column, Table } from '../ui/Table';

export type AccessToken = Schemas['AccessToken'];

type Props = {
  label: string;
  tokens: AccessToken[];
  /** A remark beside the name of a token. */
  noteOf?: (token: AccessToken) => ReactNode;
  /** For whom a token acts, where that is not the person who looks. */
  personOf?: (token: AccessToken) => string;
  onDelete: (token: AccessToken) => void;
};

/** TokenTable lists access tokens without their values. */
export function TokenTable({ label, tokens, noteOf, personOf, onDelete }: Props) {
  const person: Column<AccessToken>[] = personOf ? [{ head: text.tokenPerson, cell: personOf }] : [];

  return (
    <Table
      label={label}
      rows={tokens}
      keyOf={(token) => token.id}
      columns={[
        {
          head: text.tokenName,
          cell: (token) => (
            <span className="row">
              {token.name}
              {noteOf?.(token)}
            </span>
          ),
        },
        ...person,
        { head: text.tokenHint, cell: (token) => <code>…{token.hint}</code> },
        { head: text.tokenUsed, cell: (token) => (token.last_used ? formatAgo(token.last_used) : text.never) },
        { head: text.tokenMade, cell: (token) => formatDay(token.created), wideOnly: true },
        {
          head: text.actions,
          quiet: true,
          end: true,
          cell: (token) => (
            <Button small kind="danger" aria-label={text.deleteToken(token.name)} onClick={() => onDelete(token)}>
              {text.delete}
            </Button>
          ),
        },
      ]}
    />
  );
}
