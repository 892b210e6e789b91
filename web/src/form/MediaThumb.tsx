import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { text } from '../text/form';
import { Icon } from '../ui/Icon';
import type { IconName } from '../ui/icons';
import type { MediaValue, Medium } from './fields';
import styles from './Media.module.css';

/** mediumIcons are the icons of the kinds of files. */
export const mediumIcons: Record<Medium, IconName> = {
  IMG: 'image',
  VID: 'film',
  AUDIO: 'wave',
  ASSET_3D: 'box',
  TEXT: 'text',
};

/** useMedia reads a result or upload that a form holds by its id only, or whose picture's address has expired. */
function useMedia(file: MediaValue, needed: boolean) {
  const { teamId } = useAccount();
  const query = { team_id: teamId };

  return useQuery({
    queryKey: ['media', file.kind, file.id, teamId],
    enabled: needed,
    staleTime: 5 * 60_000,
    queryFn: async () => {
      if (file.kind === 'UPLOAD_REF') {
        return dataOf(await api.GET('/uploads/{upload_id}', { params: { path: { upload_id: file.id }, query } }));
      }
      return dataOf(await api.GET('/library/{library_id}', { params: { path: { library_id: file.id }, query } }));
    },
  });
}

/** MediaThumb is a small picture of a file in a form. */
export function MediaThumb({ file }: { file: MediaValue }) {
  const [broken, setBroken] = useState(false);
  const media = useMedia(file, broken || !file.thumb);
  const address = broken || !file.thumb ? media.data?.thumb_url : file.thumb;
  const type = file.type ?? media.data?.type ?? 'IMG';

  if (media.isError && !address) {
    return (
      <span className={styles.lost}>
        <Icon name="alert" small />
        {text.lost}
      </span>
    );
  }
  if (!address) {
    return (
      <span className={styles.kind}>
        <Icon name={mediumIcons[type]} />
      </span>
    );
  }
  return <img src={address} alt="" draggable={false} onError={() => setBroken(true)} />;
}
