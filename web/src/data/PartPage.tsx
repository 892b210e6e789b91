import type { ReactNode } from 'react';
import { text } from '../text/shared';
import type { IconName } from '../ui/icons';
import { PageHead } from '../ui/PageHead';
import { Column } from '../ui/Panel';
import { PartNav } from '../ui/PartNav';
import { Empty } from '../ui/States';
import { useAccount } from './account';

/** PagePart is one part of a page, with its name in the address. */
export type PagePart = { id: string; label: string; icon: IconName; count?: number; content: ReactNode };

type Props = {
  title: string;
  /** The address of the page, which opens the first part; the others lie below it. */
  path: string;
  parts: PagePart[];
  /** The id of the open part. */
  part: string;
  /** What stands beside the title. */
  head?: ReactNode;
};

/** PartPage is a page of several parts: their names as links, and the one that is open. */
export function PartPage({ title, path, parts, part, head }: Props) {
  const { linkTo } = useAccount();
  const open = parts.find((one) => one.id === part);
  const links = parts.map(({ content: _, ...shown }, at) => ({
    ...shown,
    href: linkTo(at === 0 ? path : `${path}/${shown.id}`),
  }));

  return (
    <Column>
      <PageHead title={title}>{head}</PageHead>
      <PartNav label={text.parts} current={part} parts={links} />
      {open ? open.content : <Empty title={text.noSuchPart} />}
    </Column>
  );
}
