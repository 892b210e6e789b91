package pages

import (
	"io/fs"
	"path"
	"sync"

	"atelier/internal/base/fault"
	"atelier/internal/web/httpd"
	"atelier/internal/web/studio"
	"atelier/web"
)

// stylesFolder is the URL path of the style sheets and fonts that the pages
// share with the studio.
const stylesFolder = "/styles/"

// staticFiles returns the files that pages include, by URL path.
var staticFiles = sync.OnceValue(readStaticFiles)

func readStaticFiles() map[string]*httpd.StaticFile {
	all := map[string]*httpd.StaticFile{
		"/style.css": newStaticFile("style.css", styleText),
		"/page.js":   newStaticFile("page.js", scriptText),
		"/wall.jpg":  newStaticFile("wall.jpg", wallPicture),
	}
	err := fs.WalkDir(web.Styles(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(web.Styles(), name)
		if err != nil {
			return err
		}
		all[stylesFolder+name] = newStaticFile(name, content)
		return nil
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	return all
}

func newStaticFile(name string, content []byte) *httpd.StaticFile {
	return httpd.NewStaticFile(httpd.FileTypes[path.Ext(name)], "no-cache", content)
}

// fileRoutes returns the routes of the static files of the pages.
func (s *server) fileRoutes() []route {
	var all []route
	for address, file := range staticFiles() {
		all = append(all, route{"GET", address, sessionIgnored, func(v *pageRequest) error {
			file.ServeHTTP(v.w, v.r)
			return nil
		}})
	}
	return all
}

// serveStudio handles GET of each page of the studio: it responds with the
// studio's start page.
func (s *server) serveStudio(v *pageRequest) error {
	s.Studio.ServeIndex(v.w, v.r)
	return nil
}

// serveStudioFile handles GET of the studio's other files.
func (s *server) serveStudioFile(v *pageRequest) error {
	if !s.Studio.ServeFile(v.w, v.r) {
		return fault.New(fault.NotFound, "This file does not exist. Load the page again.")
	}
	return nil
}

// studioRoutes returns the routes of the studio.
func (s *server) studioRoutes() []route {
	var all []route
	for _, address := range studio.Paths {
		if address == homePath {
			address = "/{$}"
		}
		all = append(all, route{"GET", address, sessionRequired, s.serveStudio})
	}
	for _, address := range studio.FilePatterns {
		all = append(all, route{"GET", address, sessionIgnored, s.serveStudioFile})
	}
	return all
}
