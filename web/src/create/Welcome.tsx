import { useQueries } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useAccount } from '../data/account';
import { toolQuery, useKits, useTools } from '../data/catalog';
import { messageOf } from '../data/ErrorFault';
import { changeDraft } from '../form/drafts';
import { mediumIcons } from '../form/MediaThumb';
import { text } from '../text/create';
import { Icon } from '../ui/Icon';
import { Bone, Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import { useStart } from './start';
import { makeSuggestions, type Suggestion } from './suggestions';
import { rememberTool } from './tools';
import styles from './Welcome.module.css';

const mostTools = 24;

/** useSuggestions reads the forms of the first tools and makes suggestions of them. */
function useSuggestions(): { suggestions: Suggestion[]; waiting: boolean } {
  const { account, teamId } = useAccount();
  const tools = useTools(teamId).data;
  const kits = useKits(teamId).data;
  const ids = useMemo(() => {
    const first = kits?.flatMap((kit) => [kit.default_tool_id, ...kit.tools.map((entry) => entry.tool.id)]) ?? [];
    return [...new Set([...first, ...(tools ?? []).map((tool) => tool.id)])].slice(0, mostTools);
  }, [tools, kits]);
  const details = useQueries({ queries: tools && kits ? ids.map((id) => toolQuery(id, teamId)) : [] });
  const waiting = !tools || !kits || details.some((one) => one.isPending);
  const known = details.flatMap((one) => (one.data ? [one.data] : []));

  return {
    waiting,
    suggestions: waiting ? [] : makeSuggestions(known, account.balance.tokens + account.balance.free_allowance_left),
  };
}

/** Welcome offers three runs that the service can make right now, one click from the first result. */
export function Welcome({ first }: { first: boolean }) {
  const { account, linkTo } = useAccount();
  const { suggestions, waiting } = useSuggestions();
  const start = useStart();
  const toast = useToast();
  const [, navigate] = useLocation();
  const [starting, setStarting] = useState<Suggestion>();
  const balance = account.balance.tokens + account.balance.free_allowance_left;

  const tryOut = async (suggestion: Suggestion) => {
    const { tool, inputs } = suggestion;
    setStarting(suggestion);
    changeDraft(account.id, tool.id, () => ({ values: { ...inputs }, count: 1, hash: tool.tool_fields_hash }));
    rememberTool(account.id, tool.id);
    try {
      await start({ tool, inputs, count: tool.num_results?.min ?? 1, tokens: tool.tokens_per_result });
    } catch (error) {
      toast({ text: messageOf(error) });
    }
    setStarting(undefined);
    navigate(linkTo(`/create/${tool.id}`));
  };

  return (
    <section className={styles.welcome} aria-labelledby="welcome-title">
      <h2 id="welcome-title" className={styles.title}>
        {first ? text.welcomeTitle : text.firstTitle}
      </h2>
      <p className="soft">{balance > 0 ? text.welcomeLead(balance) : text.welcomeBroke}</p>
      {waiting ? (
        <Waiting>
          <div className={styles.cards}>
            {[0, 1, 2].map((at) => (
              <Bone key={at} height={188} />
            ))}
          </div>
        </Waiting>
      ) : (
        <ul className={styles.cards}>
          {suggestions.map((suggestion) => (
            <li key={`${suggestion.tool.id} ${suggestion.title}`}>
              <button
                type="button"
                className={styles.card}
                disabled={starting !== undefined}
                onClick={() => void tryOut(suggestion)}
              >
                <span className={styles.picture}>
                  {suggestion.tool.avatar_url ? (
                    <img src={suggestion.tool.avatar_url} alt="" />
                  ) : (
                    <Icon name={mediumIcons[suggestion.tool.output.type]} />
                  )}
                </span>
                <span className={styles.words}>
                  <b>
                    <span className="unseen">{text.tryLabel}</span>{' '}
                    {starting === suggestion ? text.trying : suggestion.title}
                  </b>{' '}
                  <span className="small soft num">
                    {text.tryOf(suggestion.tool.name, suggestion.tool.tokens_per_result)}
                  </span>
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
