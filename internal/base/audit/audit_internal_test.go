package audit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// TestActsAreComplete compares the list with the constants.
func TestActsAreComplete(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "acts.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []Act
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				constants = append(constants, Act(text))
			}
		}
		return true
	})
	listed := slices.Clone(Acts)
	slices.Sort(constants)
	slices.Sort(listed)
	if !slices.Equal(constants, listed) || len(slices.Compact(listed)) != len(Acts) {
		t.Errorf("constants %v, listed %v: want the same, each once", constants, listed)
	}
}

func TestActsAreFoundByName(t *testing.T) {
	t.Parallel()
	for _, a := range Acts {
		if got := Named(string(a)); !slices.Equal(got, []Act{a}) {
			t.Errorf("%s names %v", a, got)
		}
	}
	if got := Named("token"); !slices.Equal(got, []Act{TokenCreated, TokenFirstUsed, TokenRegenerated, TokenDeleted}) {
		t.Errorf("token names %v", got)
	}
	for _, none := range []string{"", ".", "tok", "token.", ".created", "token.%", "TOKEN", "token.created "} {
		if got := Named(none); got != nil {
			t.Errorf("%q names %v", none, got)
		}
	}
}

// TestHashIsUnambiguous moves a character from each text to the next: all of
// these rows have the same letters in the same order.
func TestHashIsUnambiguous(t *testing.T) {
	t.Parallel()
	rows := map[string]row{
		"plain":               {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "ij", details: "kl"},
		"number to time":      {seq: 1, at: 234, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "ij", details: "kl"},
		"act to actor":        {seq: 12, at: 34, act: "a", actorID: "bcd", personID: "ef", companyID: "gh", address: "ij", details: "kl"},
		"actor to person":     {seq: 12, at: 34, act: "ab", actorID: "c", personID: "def", companyID: "gh", address: "ij", details: "kl"},
		"person to company":   {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "e", companyID: "fgh", address: "ij", details: "kl"},
		"company to address":  {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "ef", companyID: "g", address: "hij", details: "kl"},
		"address to details":  {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "i", details: "jkl"},
		"person is empty":     {seq: 12, at: 34, act: "ab", actorID: "cdef", personID: "", companyID: "gh", address: "ij", details: "kl"},
		"company is empty":    {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "efgh", companyID: "", address: "ij", details: "kl"},
		"another number":      {seq: 13, at: 34, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "ij", details: "kl"},
		"another time":        {seq: 12, at: 35, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "ij", details: "kl"},
		"another last letter": {seq: 12, at: 34, act: "ab", actorID: "cd", personID: "ef", companyID: "gh", address: "ij", details: "kL"},
	}
	seen := map[string]string{}
	for name, r := range rows {
		for _, before := range []string{"", "1"} {
			h := r.chainHash(before)
			if other, twice := seen[h]; twice {
				t.Errorf("%q and %q have one hash", name, other)
			}
			seen[h] = name
		}
	}
	// The form of the hash is stored data: a log must verify with every later version.
	const want = "3495cd68de38a3552407dbc74fbde437d41f33c69c82af31e8e8a56fa75048da"
	if got := rows["plain"].chainHash(""); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
}
