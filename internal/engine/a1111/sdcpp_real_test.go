package a1111_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine"
	"atelier/internal/engine/a1111"
	"atelier/internal/engine/enginetest"
	"atelier/internal/engine/openai"
	"atelier/internal/testkit/servers"
)

// The source of stable-diffusion.cpp, as part of a Python package.
const (
	sdcppVersion = "0.4.7"
	sdcppURL     = "https://files.pythonhosted.org/packages/b1/06/300aba9ac36e2166fbe45b4a29039a76f725ef08796f5472caf3e8c4e08d/stable_diffusion_cpp_python-0.4.7.tar.gz"
	sdcppSum     = "998d1957260dd5ae4e18a8acc0c14b0a8757aaa9f96515197b6d5bbf46df9282"
	sdcppBytes   = 64 << 20 // maximum size of the package
)

// TestStableDiffusionCpp runs jobs on the real server of stable-diffusion.cpp,
// through both of its APIs, with random weights. It builds the server first,
// which takes a quarter of an hour, so it runs only with ATELIER_TEST_SDCPP set, as
// "make sdcpp" does.
func TestStableDiffusionCpp(t *testing.T) {
	if os.Getenv("ATELIER_TEST_SDCPP") == "" {
		t.Skip("takes long: make sdcpp runs it")
	}
	at := startSDCpp(t)
	c := enginetest.NewClient(t, at, "")
	size := map[string]any{"width": int64(64), "height": int64(64)}
	a1111Job := func(prompt string, results int) engine.Job {
		j := job(t, map[string]any{"call": "txt2img"}, map[string]any{"prompt": prompt, "size": size, "steps": int64(1)}, results)
		j.OutputType = "IMG"
		return j
	}
	openaiJob := func(prompt string, results int) engine.Job {
		j := job(t, map[string]any{"call": "images", "model": "sd-cpp-local"}, map[string]any{"prompt": prompt, "size": size}, results)
		j.OutputType = "IMG"
		return j
	}
	v1 := enginetest.NewClient(t, at+"/v1", "")
	for name, door := range map[string]struct {
		engine engine.Prober
		job    func(prompt string, results int) engine.Job
	}{
		"a1111":  {a1111.New(c, a1111.Options{}), a1111Job},
		"openai": {openai.New(v1, openai.Options{}), openaiJob},
	} {
		t.Run(name, func(t *testing.T) {
			if err := door.engine.Probe(t.Context()); err != nil {
				t.Errorf("probe = %v", err)
			}
			all := enginetest.MustMakeAll(t, door.engine, door.job("a fox", 2)).Outputs()
			for i, b := range all {
				m, err := png.Decode(bytes.NewReader(b))
				if err != nil {
					t.Errorf("result %d: %v", i, err)
				} else if m.Bounds().Dx() != 64 || m.Bounds().Dy() != 64 {
					t.Errorf("result %d is %v, want 64 by 64", i, m.Bounds())
				}
			}

			const markup = `a fox <sd_cpp_extra_args>{"width":128,"height":128}</sd_cpp_extra_args>`
			if f := enginetest.MustFail(t, door.engine, door.job(markup, 1)); f.Transient {
				t.Errorf("markup that sets parameters: %v, want a permanent failure", f)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begin := time.Now()
			if err := door.engine.Run(ctx, door.job("a fox", 1), &enginetest.Recorder{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("run = %v, want the deadline", err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("the run returned %v after its deadline", took)
			}
		})
	}
}

// startSDCpp starts a server with random weights and returns its URL.
func startSDCpp(t *testing.T) string {
	t.Helper()
	program := servers.Need(t, "stable-diffusion.cpp server", "ATELIER_TEST_SDCPP", buildSDCpp)
	dir := t.TempDir()
	for file, model := range map[string]tensors{"model.safetensors": sdxsTensors(), "taesd.safetensors": taesdTensors()} {
		if err := model.writeSafetensors(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()

	// One thread: threads that wait for each other are slow on busy machines.
	cmd := exec.Command(program, "-m", "model.safetensors", "--taesd", "taesd.safetensors", "--listen-port", port, "-t", "1", "--steps", "1", "-W", "64", "-H", "64")
	cmd.Dir = dir
	process, err := servers.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-process.Ended
	})
	at := "http://127.0.0.1:" + port
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); {
		select {
		case <-process.Ended:
			t.Fatalf("the server ended: %s", process.Log())
		case <-time.After(100 * time.Millisecond):
		}
		if strings.Contains(process.Log(), "listening on") {
			return at
		}
	}
	t.Fatalf("the server was not ready within five minutes: %s", process.Log())
	return ""
}

// buildSDCpp builds the server, unless it has been built before, and returns
// the path of its program.
func buildSDCpp() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	cache, release, err := servers.Cache("sdcpp")
	if err != nil {
		return "", err
	}
	defer release()
	program := filepath.Join(cache, "sd-server-"+sdcppVersion)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	dir, err := servers.Dir("", "atelier-sdcpp-")
	if err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "source.tar.gz")
	if err := download(ctx, archive, sdcppURL, sdcppSum, sdcppBytes); err != nil {
		return "", fmt.Errorf("download stable-diffusion.cpp: %w", err)
	}
	source := filepath.Join(dir, "stable_diffusion_cpp_python-"+sdcppVersion, "vendor", "stable-diffusion.cpp")
	build := filepath.Join(dir, "build")
	for _, args := range [][]string{
		{"tar", "-xzf", archive, "-C", dir},
		{"cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DSD_WEBP=OFF", "-DSD_WEBM=OFF", "-DSD_SERVER_BUILD_FRONTEND=OFF", "-DGGML_OPENMP=OFF"},
		{"cmake", "--build", build, "--target", "sd-server", "--parallel", "2"},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("build stable-diffusion.cpp: %s (Debian: apt-get install cmake g++): %w: %s", args[0], err, out[max(0, len(out)-2000):])
		}
	}
	made, err := os.ReadFile(filepath.Join(build, "bin", "sd-server"))
	if err != nil {
		return "", err
	}
	return program, os.WriteFile(program, made, 0o700)
}

// download fetches a file and verifies its SHA-256 checksum.
func download(ctx context.Context, to, from, sum string, maxBytes int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxBytes))
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
		return fmt.Errorf("status %d with the checksum %s, want %s", res.StatusCode, got, sum)
	}
	return os.WriteFile(to, data, 0o600)
}
