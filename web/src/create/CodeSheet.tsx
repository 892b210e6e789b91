import { useState } from 'react';
import { useAccount } from '../data/account';
import { text } from '../text/create';
import { ButtonLink } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Segments } from '../ui/Segments';
import type { Call } from './call';
import type { Language } from './code';
import RunCode from './RunCode';

const languages: Language[] = ['curl', 'go', 'python', 'javascript', 'shell'];
const storageKey = 'atelier-language';

/** CodeSheet shows a run as a program in one of five languages, to copy. */
export default function CodeSheet({ call, onClose }: { call: Call; onClose: () => void }) {
  const { linkTo } = useAccount();
  const [language, setLanguage] = useState<Language>(readLanguage);
  const hasFiles = JSON.stringify(call.inputs).includes('_REF"');

  const choose = (next: Language) => {
    setLanguage(next);
    localStorage.setItem(storageKey, next);
  };

  return (
    <Dialog open onClose={onClose} title={text.codeTitle} kind="wide">
      <div className="stack">
        <Segments
          label={text.codeTitle}
          value={language}
          options={languages.map((value) => ({ value, label: text.languages[value] }))}
          onChange={choose}
        />
        <RunCode call={call} language={language} />
        <div className="row">
          <p className="small soft grow">
            {text.codeHint} {language === 'go' && text.goHint} {language === 'shell' && text.shellHint}{' '}
            {hasFiles && text.filesHint}
          </p>
          <ButtonLink small icon="key" href={linkTo('/you/tokens')}>
            {text.makeToken}
          </ButtonLink>
        </div>
      </div>
    </Dialog>
  );
}

function readLanguage(): Language {
  const stored = localStorage.getItem(storageKey) as Language | null;

  return stored && languages.includes(stored) ? stored : 'curl';
}
