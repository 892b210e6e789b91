package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/chromedp/chromedp"

	"atelier/internal/testkit/servers"
)

var errNoChromium = fmt.Errorf("chromium %w: it is not installed (Debian: apt-get install chromium)", servers.ErrMissing)

var listening = regexp.MustCompile(`DevTools listening on (ws://\S+)\n`)

// start starts the Chromium of this test binary and connects to it.
var start = sync.OnceValues(func() (context.Context, error) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		return nil, errNoChromium
	}
	dir, err := servers.Dir("", "atelier-browser-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program,
		"--headless", "--no-sandbox", // Chromium's sandbox needs more rights than a container has
		"--disable-gpu", "--disable-dev-shm-usage", "--mute-audio", "--window-size=1280,800",
		"--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps",
		"--no-proxy-server", "--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
		"--disable-site-isolation-trials", "--disable-features=IsolateOrigins,site-per-process", // so that frames of other sites are listed with the rest
		"--user-data-dir="+filepath.Join(dir, "profile"), "--remote-debugging-port=0", "about:blank")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "PATH=/usr/local/bin:/usr/bin:/bin"}
	server, err := servers.Start(cmd)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case <-server.Ended:
			return nil, fmt.Errorf("chromium ended: %s", server.Log())
		case <-time.After(10 * time.Millisecond):
		}
		if m := listening.FindStringSubmatch(server.Log()); m != nil {
			return connect(m[1])
		}
	}
	return nil, errors.New("chromium did not listen within 60 s")
})

// connect returns the context in which windows are opened. It lasts until the
// binary ends.
func connect(address string) (context.Context, error) {
	remote, _ := chromedp.NewRemoteAllocator(context.Background(), address, chromedp.NoModifyURL)
	// Newer browsers send messages that the library does not know.
	ctx, _ := chromedp.NewContext(remote, chromedp.WithErrorf(func(string, ...any) {}))
	return ctx, chromedp.Run(ctx)
}
