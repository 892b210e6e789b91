// Package packed finds Go code that does several things in one line: tuple
// assignments, and struct literals with several fields per line. arch_test.go
// forbids such lines, and build/measure counts them.
package packed

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// Tuples returns the assignments of several values to several variables, except
// swaps and assignments of the results of one call.
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

// isSwap reports whether an assignment only exchanges variables: the
// expressions on both sides are the same in another order.
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

// exprText returns the text of an expression of the kinds that occur in swaps.
// For other kinds it returns a text that is unique to the expression.
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

// maxFields is the largest number of keyed fields of a struct literal that may
// have several fields per line.
const maxFields = 4

// Literals returns the struct literals with more than maxFields keyed fields
// that have several fields on one line.
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

// countLines returns the number of lines on which fields of a struct literal
// begin. For other literals it returns the number of elements.
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
