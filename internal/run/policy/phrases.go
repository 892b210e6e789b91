package policy

import (
	"errors"
	"strings"
)

// phrases is a prefix tree of phrases. Its edges are characters, with one space
// between words.
type phrases struct{ nodes []node }

type node struct {
	next map[rune]int32
	ends bool // a phrase ends at this node
}

func (p *phrases) isEmpty() bool { return len(p.nodes) == 0 }

// addPhrase adds a phrase to the tree. It returns an error if the phrase
// contains anything other than words.
func (p *phrases) addPhrase(phrase string) error {
	text := foldText(phrase)
	if strings.ContainsFunc(text, func(r rune) bool { return !isWordRune(r) && !strings.ContainsRune(" -'’", r) }) {
		return errors.New("a phrase may contain only words; write other patterns as a /regular expression/")
	}
	text = strings.Map(separateMarks, text)
	if p.isEmpty() {
		p.nodes = make([]node, 1)
	}
	at := int32(0)
	for t := (wordScanner{text: text}); t.nextWord(); {
		if at != 0 {
			at = p.childNode(at, ' ')
		}
		for _, r := range text[t.start:t.end] {
			at = p.childNode(at, r)
		}
	}
	if at == 0 {
		return errors.New("the phrase contains no words")
	}
	p.nodes[at].ends = true
	return nil
}

// childNode returns the child of a node for the character r. It adds the child
// if there is none.
func (p *phrases) childNode(at int32, r rune) int32 {
	if next, ok := p.nodes[at].next[r]; ok {
		return next
	}
	next := int32(len(p.nodes))
	p.nodes = append(p.nodes, node{})
	if p.nodes[at].next == nil {
		p.nodes[at].next = map[rune]int32{}
	}
	p.nodes[at].next[r] = next
	return next
}

// position is the node in the tree of phrases that is reached by the words read
// so far. If split is set, it was reached by a single letter in the middle of a
// word, and only another single letter may follow.
type position struct {
	node  int32
	split bool
}

// findPhrase finds a phrase in a text in which punctuation was replaced or
// removed (see views). It returns the offset at which the phrase ends. It reads
// the words once and keeps all possible positions in the tree of phrases. There
// are few positions, because each is reached by only one sequence of letters,
// and none is deeper than the longest phrase.
func (p *phrases) findPhrase(text string) (end int, found bool) {
	var now, then []position
	var reached, before []int32
	for t := (wordScanner{text: text}); t.nextWord(); {
		now = append(now, position{}) // a phrase can begin at any word
		then = then[:0]
		for _, at := range now {
			if at.split && !t.single {
				continue
			}
			reached = append(reached[:0], at.node)
			for _, r := range text[t.start:t.end] {
				reached, before = before, reached
				reached = reached[:0]
				for _, n := range before {
					reached = p.stepNodes(reached, n, r, t.single || t.lettered)
				}
				if len(reached) == 0 {
					break
				}
			}
			for _, n := range reached {
				if p.nodes[n].ends {
					return t.end, true
				}
				if after, ok := p.nodes[n].next[' ']; ok {
					then = append(then, position{after, false})
				}
				if t.single {
					then = append(then, position{n, true})
				}
			}
		}
		now, then = then, now
	}
	return 0, false
}

// stepNodes appends the children of a node for r and for all letters that r can
// stand for.
func (p *phrases) stepNodes(to []int32, at int32, r rune, digits bool) []int32 {
	next := p.nodes[at].next
	if n, ok := next[r]; ok {
		to = append(to, n)
	}
	for _, other := range readingsOf(r, digits) {
		if n, ok := next[other]; ok {
			to = append(to, n)
		}
	}
	return to
}
