package selectjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nesting of an expression.
const maxDepth = 100

type parser struct {
	text  string
	at    int // byte offset of the next character
	depth int
}

// peek returns the next character that is not a space, or 0 at the end.
func (p *parser) peek() rune {
	for p.at < len(p.text) {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return r
		}
		p.at += n
	}
	return 0
}

// accept skips the given symbol and reports whether it was there.
func (p *parser) accept(symbol string) bool {
	p.peek()
	if strings.HasPrefix(p.text[p.at:], symbol) {
		p.at += len(symbol)
		return true
	}
	return false
}

func (p *parser) expect(symbol string) error {
	if !p.accept(symbol) {
		return fmt.Errorf("column %d: %q is missing", p.at+1, symbol)
	}
	return nil
}

func (p *parser) unexpected() error {
	if p.peek() == 0 {
		return errors.New("the expression ends too early")
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Errorf("column %d: unexpected %q", p.at+1, string(r))
}

func (p *parser) parsePipe() (node, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, errors.New("the expression is nested too deeply")
	}
	left, err := p.parseComma()
	if err != nil || !p.accept("|") {
		return left, err
	}
	right, err := p.parsePipe()
	return pipe{left, right}, err
}

func (p *parser) parseComma() (node, error) {
	one, err := p.parseComparison()
	if err != nil {
		return nil, err
	}
	all := comma{one}
	for p.accept(",") {
		if one, err = p.parseComparison(); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *parser) parseComparison() (node, error) {
	left, err := p.parseTerm()
	if err != nil {
		return nil, err
	}
	for _, operator := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if p.accept(operator) {
			right, err := p.parseTerm()
			return comparison{operator, left, right}, err
		}
	}
	return left, nil
}

// parseTerm reads a path, a literal, a list, an object or a function, and the
// members and elements that follow it.
func (p *parser) parseTerm() (node, error) {
	first, err := p.parseFirst()
	if err != nil {
		return nil, err
	}
	for {
		switch {
		case p.peek() == '.':
			p.at++
			name, err := p.parseName()
			if err != nil {
				return nil, err
			}
			first = pipe{first, member(name)}
		case p.peek() == '[':
			p.at++
			element, err := p.parseElement()
			if err != nil {
				return nil, err
			}
			first = pipe{first, element}
		case p.peek() == '?':
			p.at++
			first = optional{first}
		default:
			return first, nil
		}
	}
}

func (p *parser) parseFirst() (node, error) {
	switch r := p.peek(); {
	case r == '.':
		p.at++
		if next := p.peek(); next == '"' || isNameStart(next) {
			name, err := p.parseName()
			return member(name), err
		}
		return identity{}, nil
	case r == '(':
		p.at++
		inner, err := p.parsePipe()
		if err == nil {
			err = p.expect(")")
		}
		return inner, err
	case r == '[':
		p.at++
		if p.accept("]") {
			return list{nil}, nil
		}
		inner, err := p.parsePipe()
		if err == nil {
			err = p.expect("]")
		}
		return list{inner}, err
	case r == '{':
		p.at++
		return p.parseObject()
	case r == '"':
		text, err := p.parseText()
		return literal{text}, err
	case r == '-' || r >= '0' && r <= '9':
		return p.parseNumber()
	case isNameStart(r):
		return p.parseWord()
	}
	return nil, p.unexpected()
}

// parseElement reads what follows the bracket of a[], a[1], a[1:2] or a["b"].
func (p *parser) parseElement() (node, error) {
	switch r := p.peek(); {
	case r == ']':
		p.at++
		return each{}, nil
	case r == '"':
		name, err := p.parseText()
		if err == nil {
			err = p.expect("]")
		}
		return member(name), err
	}
	from, hasFrom, err := p.parseIndex()
	if err != nil {
		return nil, err
	}
	if p.accept(":") {
		until, hasUntil, err := p.parseIndex()
		if err == nil && !hasFrom && !hasUntil {
			err = p.unexpected()
		}
		if err == nil {
			err = p.expect("]")
		}
		return part{from, until, hasUntil}, err
	}
	if !hasFrom {
		return nil, p.unexpected()
	}
	return element(from), p.expect("]")
}

// parseIndex reads a whole number, if there is one.
func (p *parser) parseIndex() (n int, found bool, err error) {
	p.peek()
	start := p.at
	if p.accept("-") {
		p.peek()
	}
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	if p.at == start {
		return 0, false, nil
	}
	err = json.Unmarshal([]byte(p.text[start:p.at]), &n)
	if err != nil {
		return 0, false, fmt.Errorf("column %d: %q is not a whole number", start+1, p.text[start:p.at])
	}
	return n, true, nil
}

func (p *parser) parseObject() (node, error) {
	var all object
	for !p.accept("}") {
		if len(all) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		name, err := p.parseName()
		if err != nil {
			return nil, err
		}
		one := objectMember{name, member(name)}
		if p.accept(":") {
			if one.value, err = p.parseComparison(); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// parseWord reads a literal or the call of a function.
func (p *parser) parseWord() (node, error) {
	start := p.at
	word, err := p.parseName()
	if err != nil {
		return nil, err
	}
	switch word {
	case "true":
		return literal{true}, nil
	case "false":
		return literal{false}, nil
	case "null":
		return literal{nil}, nil
	case "length", "keys":
		return function(word), nil
	case "select":
		if err := p.expect("("); err != nil {
			return nil, err
		}
		condition, err := p.parsePipe()
		if err == nil {
			err = p.expect(")")
		}
		return filter{condition}, err
	}
	return nil, fmt.Errorf("column %d: there is no function %q; the functions are keys, length and select", start+1, word)
}

func (p *parser) parseNumber() (node, error) {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789eE", p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[start:p.at]
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("column %d: %q is not a number", start+1, text)
	}
	return literal{json.Number(text)}, nil
}

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// parseName reads the name of a member: a word, or a text in quotes.
func (p *parser) parseName() (string, error) {
	r := p.peek()
	if r == '"' {
		return p.parseText()
	}
	if !isNameStart(r) {
		return "", p.unexpected()
	}
	rest := p.text[p.at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return !isNameStart(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return rest[:end], nil
}

// parseText reads a text in quotes, written as in JSON.
func (p *parser) parseText() (string, error) {
	start := p.at
	for i := start + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal([]byte(p.text[start:i+1]), &text); err != nil {
				return "", fmt.Errorf("column %d: %s is not a text", start+1, p.text[start:i+1])
			}
			p.at = i + 1
			return text, nil
		}
	}
	return "", fmt.Errorf("column %d: the text has no closing quote", start+1)
}
