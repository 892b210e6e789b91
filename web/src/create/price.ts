import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, dataOf, type Schemas } from '../api/client';
import { ApiError } from '../api/errors';
import { useAccount } from '../data/account';
import { bodyOf, type StartRequest } from './start';

export type Price = Schemas['CostPreview'];

const typingPause = 350;

/** useSettled returns a text once it has not changed for a while. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);

  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), typingPause);
    return () => clearTimeout(timer);
  }, [value]);

  return settled;
}

/** usePrice asks for the price of a run 350 ms after the last change; the next question ends the one before. */
export function usePrice(request: StartRequest) {
  const { account, teamId } = useAccount();
  const body = useSettled(JSON.stringify(bodyOf(request)));

  return useQuery({
    queryKey: ['price', teamId, account.balance.tokens, body],
    staleTime: 30_000,
    gcTime: 60_000,
    placeholderData: keepPreviousData,
    retry: (failures, error) => failures < 2 && error instanceof ApiError && error.status >= 500,
    queryFn: async ({ signal }) =>
      dataOf(
        await api.POST('/generate/preview-cost', {
          params: { query: { team_id: teamId } },
          body: JSON.parse(body) as Schemas['CreateGenerationRequest'],
          signal,
        }),
      ),
  });
}

/** affordableCount returns how many results a balance pays for, if that is fewer than asked but not none. */
export function affordableCount(price: Price, balance: number, count: number, least: number): number | undefined {
  if (price.can_run || price.tokens_per_result <= 0) {
    return undefined;
  }
  const most = Math.floor(balance / price.tokens_per_result);

  return most >= least && most < count ? most : undefined;
}
