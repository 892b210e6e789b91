package docs

import (
	"html"
	"regexp"
	"strings"
)

// syntax describes the parts of a language that are set off in code blocks:
// comments, strings and keywords. One group of the expression matches.
type syntax struct {
	pattern *regexp.Regexp
	classes []string // one for each group
}

const (
	quotedString = `"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`
	hashComment  = `(?:^|[ \t])#[^\n]*`
)

func newSyntax(comment, quoted, keywords string) syntax {
	pattern := `(?m)(` + comment + `)|(` + quoted + `)`
	classes := []string{"comment", "string"}
	if keywords != "" {
		pattern += `|\b(` + strings.ReplaceAll(keywords, " ", "|") + `)\b`
		classes = append(classes, "keyword")
	}
	return syntax{regexp.MustCompile(pattern), classes}
}

var shell = newSyntax(hashComment, quotedString, "")

// syntaxes are the languages that are highlighted, by the info of a code block.
var syntaxes = map[string]syntax{
	"sh":   shell,
	"yaml": shell,
	"go": newSyntax(`//[^\n]*`, quotedString+"|`[^`]*`",
		"break case chan const continue defer else for func go if import interface map nil package range return select struct switch type var"),
	"python": newSyntax(hashComment, `"""(?s:.*?)"""|`+quotedString,
		"and as async await break class continue def else except False finally for from if import in is lambda None not or pass raise return True try while with yield"),
	"js": newSyntax(`//[^\n]*`, quotedString+"|`[^`]*`",
		"async await break case catch class const continue else export false finally for from function if import in let new null of return throw true try while yield"),
}

// highlight returns code as HTML, with elements around comments, strings and
// keywords.
func highlight(language, code string) string {
	s, ok := syntaxes[language]
	if !ok {
		return html.EscapeString(code)
	}
	var out strings.Builder
	end := 0
	for _, m := range s.pattern.FindAllStringSubmatchIndex(code, -1) {
		for i, class := range s.classes {
			from := m[2*i+2]
			to := m[2*i+3]
			if from < 0 {
				continue
			}
			out.WriteString(html.EscapeString(code[end:from]))
			out.WriteString(`<span class="` + class + `">` + html.EscapeString(code[from:to]) + `</span>`)
			end = to
		}
	}
	out.WriteString(html.EscapeString(code[end:]))
	return out.String()
}
