// Package selectjson selects parts of a JSON value with a small language, a
// subset of the one of jq:
//
//	.                       the value itself
//	.data  ."odd name"      a member of an object; null if it is absent
//	.data[0]  .data[-1]     an element of a list; null if it is absent
//	.data[2:5]              a part of a list
//	.data[]                 each element of a list, or each member of an object
//	.a | .b                 the second expression on each result of the first
//	.a, .b                  the results of both
//	[.data[].id]            the results as one list
//	{id, name: .tool.name}  an object for each result
//	select(.status == "failed")
//	length  keys            of a text, list or object
//
// A comparison (==, !=, <, <=, >, >=) has a literal or an expression on each
// side. Numbers keep the digits with which they were written.
package selectjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Expression is a parsed expression.
type Expression struct{ root node }

// Parse reads an expression. An error names the column of the problem.
func Parse(text string) (*Expression, error) {
	p := &parser{text: text}
	root, err := p.parsePipe()
	if err == nil && p.peek() != 0 {
		err = p.unexpected()
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &Expression{root}, nil
}

// Select returns the results of the expression for a value of package json,
// decoded with UseNumber or not.
func (e *Expression) Select(v any) ([]any, error) { return e.root.results(v) }

// Print writes the results for any value that package json can encode, one a
// line: texts as they are, everything else as JSON.
func (e *Expression) Print(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return e.PrintAll(w, bytes.NewReader(text))
}

// PrintAll writes the results for each JSON value that it reads, as soon as the
// value is complete.
func (e *Expression) PrintAll(w io.Writer, r io.Reader) error {
	d := json.NewDecoder(r)
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = e.printOne(w, v)
		}
		if err != nil {
			return err
		}
	}
}

func (e *Expression) printOne(w io.Writer, v any) error {
	all, err := e.Select(v)
	if err != nil {
		return err
	}
	for _, one := range all {
		if s, ok := one.(string); ok {
			_, err = fmt.Fprintln(w, s)
		} else {
			to := json.NewEncoder(w)
			to.SetEscapeHTML(false)
			err = to.Encode(one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
