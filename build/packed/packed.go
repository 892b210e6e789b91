// Package packed finds lines of Go with several steps: tuple assignments, and
// struct literals with several fields a line. arch_test.go forbids such lines,
// and build/measure counts them.
package packed

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// Tuples returns the assignments of several values to several variables, except
// swaps. The results of one call count as one value.
func Tuples(file *ast.File) []ast.Node {
	var found []ast.Node
	ast.Inspect(file, func(node ast.Node) bool {
		a, ok := node.(*ast.AssignStmt)
		if ok && len(a.Lhs) > 1 && len(a.Rhs) == len(a.Lhs) && !isSwap(a) {
			found = append(found, a)
		}
		return true
	})
	return found
}

// isSwap reports whether the right-hand sides are the left-hand sides in another
// order.
func isSwap(a *ast.AssignStmt) bool {
	return slices.Equal(sortedTexts(a.Lhs), sortedTexts(a.Rhs))
}

func sortedTexts(all []ast.Expr) []string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = exprText(e)
	}
	slices.Sort(texts)
	return texts
}

// exprText renders the expressions that swaps consist of. Two expressions of
// other kinds never have the same text.
func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return exprText(e.X) + "[" + exprText(e.Index) + "]"
	case *ast.BinaryExpr:
		return exprText(e.X) + e.Op.String() + exprText(e.Y)
	case *ast.BasicLit:
		return e.Value
	}
	return fmt.Sprintf("%T at %d", e, e.Pos())
}

// maxFields is the largest number of keyed fields that a literal may have on
// fewer lines than fields.
const maxFields = 4

// Literals returns the struct literals with more than four keyed fields and
// fewer lines than fields.
func Literals(set *token.FileSet, file *ast.File) []ast.Node {
	var found []ast.Node
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if ok && len(literal.Elts) > maxFields && countLines(set, literal) < len(literal.Elts) {
			found = append(found, literal)
		}
		return true
	})
	return found
}

// countLines counts the lines on which fields of a struct literal begin. For
// other literals it returns the number of their elements.
func countLines(set *token.FileSet, literal *ast.CompositeLit) int {
	if _, ok := literal.Type.(*ast.MapType); ok {
		return len(literal.Elts)
	}

	lines := map[int]bool{}
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return len(literal.Elts)
		}
		if _, ok := pair.Key.(*ast.Ident); !ok {
			return len(literal.Elts)
		}
		lines[set.Position(pair.Pos()).Line] = true
	}
	return len(lines)
}
