import type { Call } from './call';
import { writeGo } from './codeGo';
import { writeJavaScript } from './codeJavaScript';
import { writePython } from './codePython';
import { writeCurl, writeShell } from './codeShell';

/** Language is a way in which a run can be written down. */
export type Language = 'curl' | 'go' | 'python' | 'javascript' | 'shell';

/** writeCode writes a program that makes the run. The token comes from ATELIER_TOKEN in all of them. */
export function writeCode(language: Language, call: Call): string {
  switch (language) {
    case 'curl':
      return writeCurl(call);
    case 'go':
      return writeGo(call);
    case 'python':
      return writePython(call);
    case 'javascript':
      return writeJavaScript(call);
    case 'shell':
      return writeShell(call);
  }
}
