import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { signOut } from '../api/session';
import { useAccount } from '../data/account';
import { useTools } from '../data/catalog';
import { setPreferences } from '../data/preferences';
import { text } from '../text/app';
import { type Choice, Combobox } from '../ui/Combobox';
import { Dialog } from '../ui/Dialog';
import { Icon } from '../ui/Icon';
import type { IconName } from '../ui/icons';
import styles from './Palette.module.css';

type Props = {
  open: boolean;
  onClose: () => void;
  pages: Array<{ path: string; label: string; icon: IconName }>;
};

/** Palette finds a tool, a page or an action by its name. */
export function Palette({ open, onClose, pages }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title={text.paletteLabel} kind="palette" bare>
      <PaletteContent onClose={onClose} pages={pages} />
    </Dialog>
  );
}

function PaletteContent({ onClose, pages }: Omit<Props, 'open'>) {
  const [query, setQuery] = useState('');
  const [, navigate] = useLocation();
  const { teamId, linkTo } = useAccount();
  const tools = useTools(teamId);

  const choices = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (name: string) => words.every((word) => name.toLowerCase().includes(word));
    const close = (run: () => void) => () => {
      onClose();
      run();
    };

    const found: Choice[] = [];
    for (const tool of tools.data ?? []) {
      const tags = tool.tool_tags.map((tag) => tag.label).join(' ');
      if (matches(`${tool.name} ${tool.description ?? ''} ${tags}`)) {
        found.push({
          id: tool.id,
          section: text.paletteTools,
          content: (
            <span className={styles.tool}>
              {tool.avatar_url ? <img src={tool.avatar_url} alt="" /> : <Icon name="wand" />}
              <span className="grow">
                <b className="cut">{tool.name}</b>
                <span className="small soft cut">{tool.description}</span>
              </span>
              <span className="small soft num">{text.price(tool.tokens_per_result)}</span>
            </span>
          ),
          run: close(() => navigate(linkTo(`/create/${tool.id}`))),
        });
      }
    }
    const shown = words.length > 0 ? found : found.slice(0, 6);

    const add = (section: string, label: string, icon: IconName, run: () => void) => {
      if (matches(label)) {
        const content = (
          <span className={styles.plain}>
            <Icon name={icon} />
            {label}
          </span>
        );
        shown.push({ id: `${section} ${label}`, section, content, run: close(run) });
      }
    };
    for (const page of pages) {
      add(text.palettePages, page.label, page.icon, () => navigate(linkTo(page.path)));
    }
    add(text.palettePages, text.you, 'user', () => navigate(linkTo('/you')));
    add(text.paletteActions, text.theme.light, 'sun', () => setPreferences({ theme: 'light' }));
    add(text.paletteActions, text.theme.dark, 'moon', () => setPreferences({ theme: 'dark' }));
    add(text.paletteActions, text.signOut, 'signout', () => void signOut());

    return shown;
  }, [query, tools.data, pages, navigate, linkTo, onClose]);

  return (
    <Combobox label={text.paletteLabel} query={query} onQuery={setQuery} choices={choices} empty={text.paletteEmpty} />
  );
}
