import type { Run } from '../data/runs';
import { text } from '../text/boards';
import { type BoardNode, isSection, plainText } from './model';

/** nameOf returns what a screen reader says for a node. */
export function nameOf(node: BoardNode, run?: Run): string {
  if (node.kind === 'TEXT') {
    const words = plainText(node).slice(0, 120);
    return isSection(node) ? text.sectionNode(words) : text.textNode(words);
  }
  if (node.kind === 'GENERATION') {
    return text.runNode([run?.tool_name, run?.prompt].filter(Boolean).join(', ') || text.run);
  }
  switch (node.item?.type) {
    case 'IMG':
      return text.pictureNode;
    case 'VID':
      return text.videoNode;
    case 'AUDIO':
      return text.soundNode;
    case 'ASSET_3D':
      return text.modelNode;
    default:
      return node.missing ? text.missingNode : text.fileNode;
  }
}
