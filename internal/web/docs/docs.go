// Package docs serves the documentation at /docs: the Markdown pages of the
// folder docs as HTML, each page as Markdown, a search, and lists of all pages
// for language models (llms.txt).
//
//	docs/*.md ─▶ parsePage ─▶ page ─┬─▶ HTML with navigation      /docs/generate
//	                                ├─▶ its text                  /docs/generate.md
//	                                ├─▶ sections of all pages     /docs/search, /docs/search.json
//	                                └─▶ lists                     /docs/llms.txt, /docs/llms-full.txt
//
// Pages are rendered once, when the program starts. Everything but the copy
// buttons and the memory of the chosen language works without script.
package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"

	texts "atelier/docs"
	"atelier/internal/web/httpd"
)

// root is the URL path of the documentation.
const root = "/docs"

// policy is the Content-Security-Policy of the pages: files of this server
// only, no inline script or style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

//go:embed static/page.js static/style.css
var staticFiles embed.FS

//go:embed layout.html
var layoutText string

var layout = template.Must(template.New("layout").Parse(layoutText))

// site is the documentation of one service.
type site struct {
	sections []navigation
	pages    []*page
	index    []entry
}

// navigation is a group of pages in the navigation.
type navigation struct {
	Title string
	Pages []*page
}

// view is the data of the layout.
type view struct {
	Title       string
	Description string
	Page        *page // nil: a page without Markdown, such as the search
	Previous    *page
	Next        *page
	Sections    []navigation
	Query       string
	Body        template.HTML
}

// New returns the handler for /docs, the paths under it, and /llms.txt. Examples
// in the pages call the service at baseURL.
func New(baseURL string) (http.Handler, error) {
	s, err := readSite(baseURL)
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.Handle("GET "+root+"/{$}", http.RedirectHandler(root, http.StatusPermanentRedirect))
	mux.Handle("GET "+root+"/"+homeName, http.RedirectHandler(root, http.StatusPermanentRedirect))
	mux.HandleFunc("GET "+root+"/search", s.serveSearch)
	mux.HandleFunc("GET "+root+"/", s.serveMissing)
	for _, p := range s.pages {
		if err := s.handlePage(mux, p); err != nil {
			return nil, err
		}
	}
	if err := s.handleLists(mux, baseURL); err != nil {
		return nil, err
	}
	if err := handleFiles(mux); err != nil {
		return nil, err
	}
	return mux, nil
}

// readSite renders the pages of the embedded Markdown files.
func readSite(baseURL string) (*site, error) {
	s := &site{}
	for _, section := range contents {
		group := navigation{Title: section.Title}
		for _, name := range section.names {
			source, err := fs.ReadFile(texts.Files, name+".md")
			if err != nil {
				return nil, fmt.Errorf("read page: %w", err)
			}
			p, err := parsePage(name, addressExamples(source, baseURL))
			if err != nil {
				return nil, fmt.Errorf("page %s: %w", name, err)
			}
			group.Pages = append(group.Pages, p)
			s.pages = append(s.pages, p)
			s.index = append(s.index, p.entries()...)
		}
		s.sections = append(s.sections, group)
	}
	return s, nil
}

// handlePage adds the routes of a page, as HTML and as Markdown.
func (s *site) handlePage(mux *http.ServeMux, p *page) error {
	v := view{Title: p.Title, Description: p.Description, Page: p, Body: p.body}
	for i, other := range s.pages {
		if other != p {
			continue
		}
		if i > 0 {
			v.Previous = s.pages[i-1]
		}
		if i+1 < len(s.pages) {
			v.Next = s.pages[i+1]
		}
	}
	content, err := s.render(v)
	if err != nil {
		return err
	}
	handleFile(mux, p.Path, policy, httpd.NewStaticFile(httpd.FileTypes[".html"], "no-cache", content))
	handleFile(mux, root+"/"+p.Name+".md", policy, httpd.NewStaticFile(markdownType, "no-cache", p.source))
	return nil
}

const markdownType = "text/markdown; charset=utf-8"

// handleLists adds the routes of the lists of all pages.
func (s *site) handleLists(mux *http.ServeMux, baseURL string) error {
	index, err := json.Marshal(s.index)
	if err != nil {
		return fmt.Errorf("encode the search index: %w", err)
	}
	short := httpd.NewStaticFile(httpd.FileTypes[".txt"], "no-cache", s.listPages(baseURL))
	handleFile(mux, "/llms.txt", policy, short)
	handleFile(mux, root+"/llms.txt", policy, short)
	handleFile(mux, root+"/llms-full.txt", policy, httpd.NewStaticFile(httpd.FileTypes[".txt"], "no-cache", s.joinPages()))
	handleFile(mux, root+"/search.json", policy, httpd.NewStaticFile(httpd.FileTypes[".json"], "no-cache", index))
	return nil
}

// handleFiles adds the routes of the pictures and other files of the pages, and
// of the style sheet and the script.
func handleFiles(mux *http.ServeMux) error {
	for _, name := range []string{"style.css", "page.js"} {
		content, err := fs.ReadFile(staticFiles, "static/"+name)
		if err != nil {
			return fmt.Errorf("read embedded file: %w", err)
		}
		handleFile(mux, root+"/"+name, policy, httpd.NewStaticFile(httpd.FileTypes[path.Ext(name)], "no-cache", content))
	}
	return fs.WalkDir(texts.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".md" {
			return err
		}
		content, err := fs.ReadFile(texts.Files, name)
		if err != nil {
			return err
		}
		mediaType := httpd.FileTypes[path.Ext(name)]
		if mediaType == "" {
			mediaType = httpd.FileTypes[".txt"]
		}
		handleFile(mux, root+"/"+name, filePolicy(content), httpd.NewStaticFile(mediaType, "no-cache", content))
		return nil
	})
}

// handleFile adds the route of a file.
func handleFile(mux *http.ServeMux, route, policy string, file *httpd.StaticFile) {
	mux.HandleFunc("GET "+route, func(w http.ResponseWriter, r *http.Request) {
		httpd.RecordOf(r.Context()).Route = route
		w.Header().Set("Content-Security-Policy", policy)
		file.ServeHTTP(w, r)
	})
}

var svgStyle = regexp.MustCompile(`(?s)<style>(.*?)</style>`)

// filePolicy returns the Content-Security-Policy of a file. A drawing that is
// opened by itself has its own style element, which the policy allows by its
// hash.
func filePolicy(content []byte) string {
	style := svgStyle.FindSubmatch(content)
	if style == nil {
		return policy
	}
	sum := sha256.Sum256(style[1])
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}

// render fills the layout.
func (s *site) render(v view) ([]byte, error) {
	v.Sections = s.sections
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("render page: %w", err)
	}
	return out.Bytes(), nil
}

// respond sends a page that depends on the request.
func (s *site) respond(w http.ResponseWriter, r *http.Request, status int, v view) {
	content, err := s.render(v)
	if err != nil {
		panic(err) // the template is tested with every page
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Type", httpd.FileTypes[".html"])
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

// serveMissing handles GET of paths under /docs that do not exist. It responds
// with a search for the name in the path.
func (s *site) serveMissing(w http.ResponseWriter, r *http.Request) {
	httpd.RecordOf(r.Context()).Route = root + "/{missing}"
	name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, root+"/"), ".md")
	words := strings.NewReplacer("/", " ", "-", " ", "_", " ").Replace(strings.ToValidUTF8(name, ""))
	words = strings.TrimSpace(shorten(words, maxQuery))
	s.respond(w, r, http.StatusNotFound, view{
		Title: "Page not found",
		Query: words,
		Body:  renderResults("This page does not exist", words, searchEntries(s.index, words)),
	})
}
