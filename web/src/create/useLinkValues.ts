import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import type { ToolDetail } from '../data/catalog';
import { readInputLink } from '../data/links';
import { useSearchValues } from '../data/search';
import { readDraft, setDraftValue } from '../form/drafts';
import type { MediaValue } from '../form/fields';
import { addMedia, fieldFor } from '../form/mediafields';
import { text } from '../text/create';
import { useToast } from '../ui/Toast';
import type { CreatePage } from './context';

/**
 * useLinkValues takes what a link to Create brings along: `?from=` the inputs of a run, `?input=` a result or an upload.
 * The parameter goes once it was taken, so that a reload does not take it again.
 */
export function useLinkValues(
  tool: ToolDetail | undefined,
  page: Pick<CreatePage, 'takeInputs'>,
  onFile: (file: MediaValue) => void,
): void {
  const { account, teamId } = useAccount();
  const [search, setSearch] = useSearchValues();
  const cache = useQueryClient();
  const toast = useToast();
  const from = search.get('from');
  const input = search.get('input');

  // biome-ignore lint/correctness/useExhaustiveDependencies: each parameter is taken once.
  useEffect(() => {
    if (!from) {
      return;
    }
    setSearch({ from: undefined });
    const params = { path: { request_id: from }, query: { team_id: teamId, include: 'inputs' as const } };
    cache
      .fetchQuery({
        queryKey: ['run', from, teamId],
        queryFn: async () => dataOf(await api.GET('/generate/{request_id}', { params })),
      })
      .then(page.takeInputs, () => toast({ text: text.runGone }));
  }, [from]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each parameter is taken once, as soon as the tool is known.
  useEffect(() => {
    const link = readInputLink(input);
    if (!link || !tool) {
      return;
    }
    setSearch({ input: undefined });
    const take = async () => {
      const query = { team_id: teamId };
      const item =
        link.kind === 'UPLOAD_REF'
          ? dataOf(await api.GET('/uploads/{upload_id}', { params: { path: { upload_id: link.id }, query } }))
          : dataOf(await api.GET('/library/{library_id}', { params: { path: { library_id: link.id }, query } }));
      const file: MediaValue = { ...link, type: item.type, thumb: item.thumb_url };
      const field = fieldFor(tool.fields, readDraft(account.id, tool.id).values, item.type, item.mime_type);
      if (!field) {
        onFile(file);
        return;
      }
      setDraftValue(account.id, tool.id, field.fieldKey, (before) => addMedia(field, before, file));
      toast({ text: text.usedAsInput(field.label), seconds: 4 });
    };
    take().catch(() => toast({ text: text.fileGone }));
  }, [input, tool]);
}
