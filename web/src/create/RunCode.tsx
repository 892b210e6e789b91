import { text } from '../text/create';
import { CopyCode } from '../ui/CopyCode';
import type { Call } from './call';
import { type Language, writeCode } from './code';

/** RunCode shows a run as a program in one language. */
export default function RunCode({ call, language }: { call: Call; language: Language }) {
  return <CopyCode text={writeCode(language, call)} label={text.codeFor(text.languages[language])} />;
}
