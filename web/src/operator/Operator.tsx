import { useAccount } from '../data/account';
import { type PagePart, PartPage } from '../data/PartPage';
import { text } from '../text/operator';
import { PageHead } from '../ui/PageHead';
import { Column } from '../ui/Panel';
import { Empty } from '../ui/States';
import { Companies } from './Companies';
import { Persons } from './Persons';
import { Settings } from './Settings';
import { Status } from './Status';
import { Work } from './Work';

const parts: PagePart[] = [
  { id: 'status', label: text.parts.status, icon: 'gauge', content: <Status /> },
  { id: 'work', label: text.parts.work, icon: 'layers', content: <Work /> },
  { id: 'people', label: text.parts.people, icon: 'user', content: <Persons /> },
  { id: 'companies', label: text.parts.companies, icon: 'users', content: <Companies /> },
  { id: 'settings', label: text.parts.settings, icon: 'settings', content: <Settings /> },
];

/** Operator shows the whole installation to those who operate it. */
export default function Operator({ part }: { part: string }) {
  const { me } = useAccount();

  if (!me.operator) {
    return (
      <Column>
        <PageHead title={text.title} />
        <Empty title={text.refused}>{text.refusedWhy}</Empty>
      </Column>
    );
  }
  return <PartPage title={text.title} path="/operator" parts={parts} part={part} />;
}
