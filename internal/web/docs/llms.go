package docs

import (
	"bytes"
	"fmt"
)

// listPages returns llms.txt: every page with its description and the address of
// its Markdown, in the format of llmstxt.org.
func (s *site) listPages(baseURL string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Atelier\n\n> Atelier is a self-hosted service that runs media generation jobs (pictures, video, sound, 3D, text) behind one HTTP API, %s/api/v2.\n", baseURL)
	fmt.Fprintf(&out, "\nEvery operation is described in [the OpenAPI document](%s/api/v2/openapi.json). [All pages in one file](%s%s/llms-full.txt).\n", baseURL, baseURL, root)
	for _, section := range s.sections {
		fmt.Fprintf(&out, "\n## %s\n\n", section.Title)
		for _, p := range section.Pages {
			fmt.Fprintf(&out, "- [%s](%s%s/%s.md): %s\n", p.Title, baseURL, root, p.Name, p.Description)
		}
	}
	return out.Bytes()
}

// joinPages returns the Markdown of all pages in one text.
func (s *site) joinPages() []byte {
	var out bytes.Buffer
	for i, p := range s.pages {
		if i > 0 {
			out.WriteString("\n---\n\n")
		}
		fmt.Fprintf(&out, "<!-- %s -->\n\n", p.Path)
		out.Write(p.source)
	}
	return out.Bytes()
}
