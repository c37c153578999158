// Package imageworker loads images with the process imageworker. It is one file, without dependencies, for Go 1.19 or newer.
//
//		worker := imageworker.New(imageworker.Settings{Arguments: []string{"--max-per-host=8"}})
//		defer worker.Close()
//		image, err := worker.Load(ctx, imageworker.LoadParams{URL: "https://example.com/cat.jpg"})
//
//	  - Any number of goroutines may call at once. The worker starts at the first call.
//	  - A call ends when its context ends, with the context's error, and its request is cancelled.
//	  - If the worker dies, pending calls fail with ErrWorkerExited. The next call starts another worker, after a pause.
//	  - OnEvent of a call is called on the goroutine of the call.
//
// The protocol is in protocol/README.md.
package imageworker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Version is the version of this client.
const Version = "0.1.0"

// ProtocolVersion is the version of the protocol that this client speaks.
const ProtocolVersion = 1

// Errors

// Error is an error of the worker or of this client. Code is the number of the protocol, 0 for errors of this client.
// errors.Is(err, ErrNetwork) tells whether it is of a class.
type Error struct {
	Kind      string
	Code      int
	Message   string
	Retryable bool
	Data      ErrorData
	// Of ErrWorkerExited: the exit status or signal, the last lines of the log, and the URLs of all loads that were lost.
	ExitStatus string
	Log        []string
	Lost       []string
	class      *Class
}

func (e *Error) Error() string { return e.Message }

// Is tells whether the error is of this class.
func (e *Error) Is(target error) bool {
	for class := e.class; class != nil; class = class.Parent {
		if class == target {
			return true
		}
	}
	return false
}

// Class is a class of errors. It tells what to do; Kind of an Error is the exact reason.
type Class struct {
	Name   string
	Parent *Class
}

func (c *Class) Error() string { return c.Name }

// The classes of errors.
var (
	ErrRequest            = &Class{"RequestError", nil}                     // The request is wrong.
	ErrInvalidParams      = &Class{"InvalidParamsError", ErrRequest}        // A parameter is wrong: Data.Member.
	ErrInternal           = &Class{"InternalError", nil}                    // The worker failed, not the request.
	ErrCancelled          = &Class{"CancelledByRequest", nil}               // Cancel, another load in the slot, or Close.
	ErrNetwork            = &Class{"NetworkError", nil}                     // The image could not be transferred.
	ErrTransport          = &Class{"TransportError", ErrNetwork}            // The connection failed.
	ErrTimeout            = &Class{"TimeoutError", ErrNetwork}              // A limit of the worker was exceeded: Data.Phase.
	ErrHTTPStatus         = &Class{"HTTPStatusError", ErrNetwork}           // Data.Status is not 2xx.
	ErrPolicy             = &Class{"PolicyError", ErrNetwork}               // An option refused the transfer.
	ErrCache              = &Class{"CacheError", nil}                       // Not in the cache, or a file failed.
	ErrContent            = &Class{"ContentError", nil}                     // The content is not a usable image.
	ErrLifecycle          = &Class{"LifecycleError", nil}                   // No more requests, or none at present.
	ErrWorkerExited       = &Class{"WorkerExited", ErrLifecycle}            // The worker ended, or did not start.
	ErrClosed             = &Class{"ClosedError", ErrLifecycle}             // Close or Shutdown was called.
	ErrIncompatibleWorker = &Class{"IncompatibleWorkerError", ErrLifecycle} // Another version of the protocol.
)

// Classes has the class of each kind of error of the protocol.
var Classes = map[string]*Class{
	"parseError": ErrRequest, "invalidRequest": ErrRequest, "methodNotFound": ErrRequest, "invalidParams": ErrInvalidParams,
	"internal": ErrInternal, "cancelled": ErrCancelled, "resolve": ErrTransport, "connect": ErrTransport, "tls": ErrTransport,
	"truncated": ErrTransport, "network": ErrTransport, "timeout": ErrTimeout, "http": ErrHTTPStatus, "redirects": ErrPolicy,
	"tooLarge": ErrPolicy, "blockedAddress": ErrPolicy, "recentlyFailed": ErrPolicy, "robots": ErrPolicy, "notCached": ErrCache,
	"diskFull": ErrCache, "io": ErrCache, "notAnImage": ErrContent, "unsupportedFormat": ErrContent, "corrupt": ErrContent,
	"tooManyPixels": ErrContent, "decoderCrashed": ErrContent, "decodeTimeout": ErrContent, "digestMismatch": ErrContent,
	"unwanted": ErrContent, "shuttingDown": ErrLifecycle, "overloaded": ErrLifecycle,
}

var families = map[int]*Class{2: ErrNetwork, 3: ErrCache, 4: ErrContent, 5: ErrLifecycle}

type wireError struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    ErrorData `json:"data"`
}

func (w *wireError) error() *Error {
	class := Classes[w.Data.Kind]
	if class == nil {
		class = families[w.Code/1000]
	}
	if class == nil {
		class = ErrRequest
	}
	return &Error{Kind: w.Data.Kind, Code: w.Code, Message: w.Message, Retryable: w.Data.Retryable, Data: w.Data, class: class}
}

func ownError(class *Class, kind string, code int, format string, values ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, values...), Data: ErrorData{Kind: kind}, class: class}
}

// of is the same error for the call with this URL.
func (e *Error) of(url string) *Error {
	own := *e
	own.Data.URL = url
	return &own
}

// Calls

// Event is an event of a request. Params has all of its members.
type Event struct {
	Name     string          `json:"-"`
	Attempt  int             `json:"attempt"`
	Received int64           `json:"received"`
	Done     int             `json:"done"`
	Total    int64           `json:"total"`
	Bytes    int64           `json:"bytes"`
	Path     string          `json:"path"`
	Params   json.RawMessage `json:"-"`
}

type message struct {
	ID     *int64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

// Call is a request that has been sent.
type Call struct {
	id      int64
	urls    []string
	life    *life
	onEvent func(Event)
	arrived chan struct{} // Has room for one.
	// Of the lock of the life:
	events  []Event
	answer  *message
	failure *Error
	refusal *wireError
}

// ID is the id of the request in the protocol, for Cancel and Prioritize.
func (c *Call) ID() int64 { return c.id }

func (c *Call) wake() {
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

func (c *Call) url() string {
	if len(c.urls) == 0 {
		return ""
	}
	return c.urls[0]
}

// Wait waits for the result and stores it in the value that result points to. One goroutine may wait. If the context ends,
// the request is cancelled.
func (c *Call) Wait(ctx context.Context, result any) error {
	ended := false
	defer func() {
		if !ended {
			c.life.abandon(c)
		}
	}()
	for {
		c.life.mu.Lock()
		events := c.events
		c.events = nil
		answer, failure := c.answer, c.failure
		c.life.mu.Unlock()
		for _, event := range events {
			c.onEvent(event)
		}
		ended = answer != nil || failure != nil
		switch {
		case failure != nil:
			return failure
		case answer != nil && answer.Error != nil:
			return answer.Error.error()
		case answer != nil:
			if err := json.Unmarshal(answer.Result, result); err != nil {
				return ownError(ErrInternal, "internal", 0, "the answer cannot be read: %v", err)
			}
			return nil
		}
		select {
		case <-c.arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// One worker process

// life is one worker process from its start to its end. One goroutine writes, one reads and waits for the end, and one reads
// the log.
type life struct {
	worker                *Worker
	process               *exec.Cmd
	stdin, stdout, stderr *os.File
	greeting              *Call
	greeted               chan struct{} // Closed after the answer to initialize, or the end.
	logged                chan struct{} // Closed when the log ends.
	ended                 chan struct{} // Closed when the process has ended and its calls have failed.
	pending               chan struct{} // Has room for one: there are lines to write, or no more will come.

	mu              sync.Mutex
	calls           map[int64]*Call
	lastID, askedID int64
	outgoing        [][]byte
	closing         bool
	isDying         bool
	maxLine         int
	log             []string
	misfit, failure *Error
}

func start(worker *Worker, binary string, arguments []string, options any) (*life, error) {
	l := &life{worker: worker, calls: map[int64]*Call{}, greeted: make(chan struct{}), logged: make(chan struct{}),
		ended: make(chan struct{}), pending: make(chan struct{}, 1)}
	client := map[string]string{"name": "imageworker.go", "version": Version}
	params := map[string]any{"protocolVersion": ProtocolVersion, "client": client, "options": options}
	var err error
	if l.greeting, err = l.submit("initialize", params, nil, nil); err != nil {
		return nil, err
	}
	var files []*os.File
	for i := 0; i < 3; i++ {
		reader, writer, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, reader, writer)
	}
	l.stdin, l.stdout, l.stderr = files[1], files[2], files[4]
	l.process = exec.Command(binary, arguments...)
	l.process.Stdin, l.process.Stdout, l.process.Stderr = files[0], files[3], files[5]
	// In a process group of its own, Ctrl-C reaches only the program.
	l.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := l.process.Start(); err != nil {
		closeAll(files)
		return nil, err
	}
	closeAll([]*os.File{files[0], files[3], files[5]})
	go l.write()
	go l.readLog()
	go l.read()
	return l, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// An invalid byte becomes this escape; the character U+FFFD itself is not escaped.
var notUnicode = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ufffd`)

func encode(request map[string]any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line) // Ends the line.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return nil, ownError(ErrInvalidParams, "invalidParams", -32602, "the parameters cannot be written as JSON: %v", err)
	}
	if notUnicode.Match(line.Bytes()) {
		return nil, ownError(ErrInvalidParams, "invalidParams", -32602, "texts must be valid UTF-8")
	}
	return line.Bytes(), nil
}

func (l *life) submit(method string, params any, urls []string, onEvent func(Event)) (*Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return nil, l.failure
	}
	if l.closing {
		return nil, closedError()
	}
	l.lastID++
	line, err := encode(map[string]any{"id": l.lastID, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if length := len(line) - 1; l.maxLine > 0 && length > l.maxLine {
		text := "the request has %d bytes, more than --max-line (%d)"
		return nil, ownError(ErrRequest, "invalidRequest", -32600, text, length, l.maxLine)
	}
	call := &Call{id: l.lastID, urls: urls, life: l, onEvent: onEvent, arrived: make(chan struct{}, 1)}
	l.calls[call.id] = call
	l.add(line)
	return call, nil
}

// tell sends a request whose answer is ignored.
func (l *life) tell(method string, params any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	if line, err := encode(map[string]any{"id": l.lastID, "method": method, "params": params}); err == nil {
		l.add(line)
	}
}

func (l *life) add(line []byte) {
	if !l.closing {
		l.outgoing = append(l.outgoing, line)
		l.wakeWriter()
	}
}

func (l *life) wakeWriter() {
	select {
	case l.pending <- struct{}{}:
	default:
	}
}

// abandon is called if the program does not wait for this call any more.
func (l *life) abandon(call *Call) {
	l.mu.Lock()
	_, isPending := l.calls[call.id]
	delete(l.calls, call.id)
	l.mu.Unlock()
	if isPending {
		l.tell("cancel", map[string]int64{"id": call.id})
	}
}

// ready waits for the worker's answer to initialize.
func (l *life) ready(ctx context.Context) error {
	select {
	case <-l.greeted:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return l.failure
	}
	return nil
}

func (l *life) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure != nil
}

// finish ends the process in steps: close the input, SIGTERM, SIGKILL. With 0 it waits without a limit.
func (l *life) finish(grace time.Duration) {
	l.mu.Lock()
	l.closing = true
	l.wakeWriter()
	l.mu.Unlock()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		var late <-chan time.Time
		if grace > 0 {
			late = time.After(grace)
		}
		select {
		case <-l.ended:
			return
		case <-late:
			l.kill(signal)
		}
	}
	<-l.ended
}

// kill sends a signal to the process and what it has started. Once the reader waits for the process, its number may be in use
// again.
func (l *life) kill(signal syscall.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isDying {
		_ = syscall.Kill(-l.process.Process.Pid, signal)
	}
}

func (l *life) write() {
	defer l.stdin.Close()
	for {
		l.mu.Lock()
		lines, closing := l.outgoing, l.closing
		l.outgoing = nil
		l.mu.Unlock()
		if len(lines) > 0 {
			if _, err := l.stdin.Write(bytes.Join(lines, nil)); err != nil {
				l.kill(syscall.SIGKILL) // A worker that does not read cannot answer.
				return
			}
		} else if closing {
			return
		} else {
			<-l.pending
		}
	}
}

func (l *life) readLog() {
	defer close(l.logged)
	reader := bufio.NewReader(l.stderr)
	for {
		line, err := reader.ReadString('\n')
		if line != "" {
			l.note(strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "?"))
		}
		if err != nil {
			return
		}
	}
}

func (l *life) note(line string) {
	l.mu.Lock()
	l.log = append(l.log, line)
	if len(l.log) > 20 {
		l.log = l.log[1:]
	}
	l.mu.Unlock()
	if l.worker.settings.OnLog != nil {
		l.worker.settings.OnLog(line)
	}
}

func (l *life) read() {
	reader := bufio.NewReaderSize(l.stdout, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.receive(line)
		}
		if err != nil {
			break
		}
	}
	l.kill(syscall.SIGKILL) // Without output it cannot answer.
	l.mu.Lock()
	l.isDying = true
	l.mu.Unlock()
	_ = l.process.Wait()
	select {
	case <-l.logged:
	case <-time.After(time.Second): // Another process may hold the pipe.
	}
	l.finished(exitStatus(l.process.ProcessState))
	closeAll([]*os.File{l.stdout, l.stderr})
	l.mu.Lock()
	l.closing = true
	l.wakeWriter()
	failure := l.failure
	l.mu.Unlock()
	close(l.ended)
	if l.worker.settings.OnExit != nil {
		l.worker.settings.OnExit(failure)
	}
}

func exitStatus(state *os.ProcessState) string {
	if state == nil {
		return "unknown" // The program has waited for all of its children.
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprint(status.ExitStatus())
}

func (l *life) finished(status string) {
	l.mu.Lock()
	var lost []string
	for _, call := range l.calls {
		lost = append(lost, call.urls...)
	}
	log, misfit := append([]string{}, l.log...), l.misfit
	l.mu.Unlock()
	failure := l.worker.died(status, log, lost, misfit, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = failure
	for id, call := range l.calls {
		delete(l.calls, id)
		call.failure = failure.of(call.url())
		call.wake()
	}
	if l.maxLine == 0 {
		close(l.greeted)
	}
}

func (l *life) receive(line []byte) {
	var it message
	if err := json.Unmarshal(line, &it); err != nil || (it.Method == "" && it.ID == nil && it.Error == nil) {
		if len(line) > 40 {
			line = line[:40]
		}
		l.note(fmt.Sprintf("the worker wrote a line that is not a message: %q", line))
		return
	}
	if it.Method == "" && it.ID != nil && *it.ID == l.greeting.id {
		l.greet(&it)
		return
	}
	if it.Method == "" {
		l.worker.answered()
	}
	if it.Method == "" && it.ID == nil {
		l.askWhose(it.Error)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if it.Method != "" {
		l.receiveEvent(&it)
		return
	}
	call := l.calls[*it.ID]
	if call == nil {
		l.releasePixels(it.Result)
		return
	}
	delete(l.calls, call.id)
	if call.refusal != nil && it.Error != nil && it.Error.Code == -32600 {
		it.Error = call.refusal
	}
	if it.Error == nil && it.Result == nil {
		it.Error = &wireError{-32603, "the answer cannot be read", ErrorData{Kind: "internal"}}
	}
	call.answer = &it
	call.wake()
}

func (l *life) receiveEvent(it *message) {
	var owner struct {
		ID int64 `json:"id"`
	}
	event := Event{Name: it.Method, Params: it.Params}
	if json.Unmarshal(it.Params, &owner) != nil || json.Unmarshal(it.Params, &event) != nil {
		return
	}
	if call := l.calls[owner.ID]; call != nil && call.onEvent != nil {
		call.events = append(call.events, event)
		call.wake()
	}
}

// releasePixels releases the pixels of a call that was abandoned. Nobody else would.
func (l *life) releasePixels(result json.RawMessage) {
	var image struct{ Pixels *Pixels }
	if json.Unmarshal(result, &image) == nil && image.Pixels != nil && image.Pixels.Path != "" {
		go l.tell("release", ReleaseParams{Path: image.Pixels.Path, Unused: true})
	}
}

// greet takes the answer to initialize. If it is an error or names another version, no other answer can be trusted.
func (l *life) greet(it *message) {
	var result struct {
		ProtocolVersion int
		Limits          struct{ MaxLine int }
	}
	_ = json.Unmarshal(it.Result, &result)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.maxLine > 0 || l.misfit != nil {
		return
	}
	if it.Error == nil && result.ProtocolVersion == ProtocolVersion && result.Limits.MaxLine > 0 {
		l.maxLine = result.Limits.MaxLine
		delete(l.calls, l.greeting.id)
		close(l.greeted)
		return
	}
	reason := fmt.Sprintf("speaks %d", result.ProtocolVersion)
	if it.Error != nil {
		reason = "answers: " + it.Error.Message
	}
	text := "this client speaks protocol version %d, and the worker %s"
	l.misfit = ownError(ErrIncompatibleWorker, "incompatible", 0, text, ProtocolVersion, reason)
	_ = syscall.Kill(-l.process.Process.Pid, syscall.SIGKILL)
}

// askWhose finds the call of a line that the worker could not read. All ids are sent again without a method: the worker
// answers the id that it does not know, and refuses the others with Data.ID.
func (l *life) askWhose(refusal *wireError) {
	if refusal.Data.ID != nil {
		return
	}
	l.note("the worker refused a line: " + refusal.Message)
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, call := range l.calls {
		call.refusal = refusal
		if id > l.askedID {
			l.add([]byte(fmt.Sprintf("{\"id\":%d}\n", id)))
		}
	}
	l.askedID = l.lastID
}

// The worker

// Settings are the settings of a worker. All of them are optional.
type Settings struct {
	Binary       string        // The worker. Default: $IMAGEWORKER, else imageworker on the PATH.
	Arguments    []string      // Options of the worker, such as --cache-dir=/var/cache/images.
	Options      Options       // Options that can change at run time.
	OnLog        func(string)  // Is called with each line of the worker's log.
	OnExit       func(error)   // Is called when the worker has ended.
	MaxRestarts  int           // Restarts in a row without an answer. Default: 5; negative: none.
	LongestPause time.Duration // The longest pause before a restart. Default: 10 seconds.
}

// Worker is one worker, and the next when it dies.
type Worker struct {
	settings   Settings
	mu         sync.Mutex
	life       *life
	configured map[string]json.RawMessage
	deaths     int
	diedAt     time.Time
	failure    *Error
	hasRun     bool
	closed     chan struct{}
	isClosed   bool
}

// New returns a worker. The process starts at the first call.
func New(settings Settings) *Worker {
	if settings.MaxRestarts == 0 {
		settings.MaxRestarts = 5
	}
	if settings.LongestPause == 0 {
		settings.LongestPause = 10 * time.Second
	}
	w := &Worker{settings: settings, configured: map[string]json.RawMessage{}, closed: make(chan struct{})}
	w.remember(settings.Options)
	return w
}

// Ptr returns a pointer to a value, for optional parameters: Retries: Ptr(0).
func Ptr[T any](value T) *T { return &value }

// remember keeps options for workers that are started later.
func (w *Worker) remember(options Options) {
	if text, err := json.Marshal(options); err == nil {
		_ = json.Unmarshal(text, &w.configured)
	}
}

// FindWorker returns the worker to start: the argument, else $IMAGEWORKER, else imageworker on the PATH.
func FindWorker(binary string) (string, error) {
	if binary != "" {
		return binary, nil
	}
	if named := os.Getenv("IMAGEWORKER"); named != "" {
		return named, nil
	}
	found, err := exec.LookPath("imageworker")
	if err != nil {
		err = fmt.Errorf("imageworker was not found: put a release of it on the PATH, or set IMAGEWORKER to its path (%w)", err)
	}
	return found, err
}

// Submit sends a request and does not wait for its result: Wait of the Call does. Params is a struct of this package.
func (w *Worker) Submit(ctx context.Context, method string, params any, onEvent func(Event)) (*Call, error) {
	l, err := w.running(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.ready(ctx); err != nil {
		return nil, err
	}
	return l.submit(method, params, urlsOf(params), onEvent)
}

func urlsOf(params any) (urls []string) {
	switch it := params.(type) {
	case LoadParams:
		urls = append(urls, it.URL)
	case ProbeParams:
		urls = append(urls, it.URL)
	case PrefetchParams:
		for _, item := range it.URLs {
			urls = append(urls, item.URL)
		}
	}
	return urls
}

func call[Result any](ctx context.Context, w *Worker, method string, params any, onEvent func(Event)) (*Result, error) {
	it, err := w.Submit(ctx, method, params, onEvent)
	if err != nil {
		return nil, err
	}
	result := new(Result)
	if err := it.Wait(ctx, result); err != nil {
		return nil, err
	}
	return result, nil
}

type none struct{}

// Ready starts the worker if none runs, and returns its properties.
func (w *Worker) Ready(ctx context.Context) (*InitializeResult, error) {
	return w.Initialize(ctx, InitializeParams{ProtocolVersion: ProtocolVersion})
}

// Initialize returns the properties of the worker.
func (w *Worker) Initialize(ctx context.Context, params InitializeParams) (*InitializeResult, error) {
	return call[InitializeResult](ctx, w, "initialize", params, nil)
}

// Load loads an image. With OnEvent, Events defaults to all but preview.
func (w *Worker) Load(ctx context.Context, params LoadParams) (*Image, error) {
	if params.OnEvent != nil && params.Events == nil {
		params.Events = []string{"started", "progress", "retrying", "cached"}
	}
	return call[Image](ctx, w, "load", params, params.OnEvent)
}

// Outcome is the outcome of a load of LoadAll. Index is that of its entry.
type Outcome struct {
	Index int
	Image *Image
	Err   error
}

// LoadAll loads many images, at most maxInFlight at once, and calls each with every outcome, on the goroutine of the caller.
func (w *Worker) LoadAll(ctx context.Context, entries []LoadParams, maxInFlight int, each func(Outcome)) {
	indices, outcomes := make(chan int, len(entries)), make(chan Outcome, len(entries))
	for index := range entries {
		indices <- index
	}
	close(indices)
	for i := 0; i < maxInFlight; i++ {
		go func() {
			for index := range indices {
				image, err := w.Load(ctx, entries[index])
				outcomes <- Outcome{index, image, err}
			}
		}()
	}
	for range entries {
		each(<-outcomes)
	}
}

// Prefetch loads images into the cache.
func (w *Worker) Prefetch(ctx context.Context, params PrefetchParams) (*PrefetchResult, error) {
	if params.OnEvent != nil && params.Events == nil {
		params.Events = []string{"progress"}
	}
	return call[PrefetchResult](ctx, w, "prefetch", params, params.OnEvent)
}

// Probe tells the format and size of an image from its first bytes.
func (w *Worker) Probe(ctx context.Context, params ProbeParams) (*ProbeResult, error) {
	return call[ProbeResult](ctx, w, "probe", params, nil)
}

// Process checks an image that the program has, and makes files of it.
func (w *Worker) Process(ctx context.Context, params ProcessParams) (*ProcessResult, error) {
	return call[ProcessResult](ctx, w, "process", params, nil)
}

// ProcessFile is Process for an open file, which needs no name.
func (w *Worker) ProcessFile(ctx context.Context, file *os.File, params ProcessParams) (*ProcessResult, error) {
	defer runtime.KeepAlive(file) // Otherwise the collector might close it.
	params.File = &HostFile{FD: Ptr(int(file.Fd()))}
	return w.Process(ctx, params)
}

// Cancel cancels requests.
func (w *Worker) Cancel(ctx context.Context, params CancelParams) (*CancelResult, error) {
	return call[CancelResult](ctx, w, "cancel", params, nil)
}

// Prioritize changes the priority of requests.
func (w *Worker) Prioritize(ctx context.Context, params PrioritizeParams) (*PrioritizeResult, error) {
	return call[PrioritizeResult](ctx, w, "prioritize", params, nil)
}

// Pause lets no new transfers start.
func (w *Worker) Pause(ctx context.Context) (*PauseResult, error) {
	return call[PauseResult](ctx, w, "pause", none{}, nil)
}

// Resume starts transfers again.
func (w *Worker) Resume(ctx context.Context) (*PauseResult, error) {
	return call[PauseResult](ctx, w, "resume", none{}, nil)
}

// Query tells what the cache contains of an image.
func (w *Worker) Query(ctx context.Context, params QueryParams) (*QueryResult, error) {
	return call[QueryResult](ctx, w, "query", params, nil)
}

// Store puts an image of the program into the cache.
func (w *Worker) Store(ctx context.Context, params StoreParams) (*Image, error) {
	return call[Image](ctx, w, "store", params, nil)
}

// Clear removes images from the cache.
func (w *Worker) Clear(ctx context.Context, params ClearParams) (*ClearResult, error) {
	return call[ClearResult](ctx, w, "clear", params, nil)
}

// Release releases pixels.
func (w *Worker) Release(ctx context.Context, params ReleaseParams) (*ReleaseResult, error) {
	return call[ReleaseResult](ctx, w, "release", params, nil)
}

// TakePixels returns the pixels of a load with Deliver: "pixels", and releases them.
func (w *Worker) TakePixels(ctx context.Context, image *Image) ([]byte, error) {
	defer w.Release(ctx, ReleaseParams{Path: image.Pixels.Path, Unused: true})
	file, err := os.Open(image.Pixels.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows := make([]byte, image.Pixels.Bytes)
	_, err = file.ReadAt(rows, int64(image.Pixels.Offset))
	return rows, err
}

// Stats returns counters and states.
func (w *Worker) Stats(ctx context.Context) (*StatsResult, error) {
	return call[StatsResult](ctx, w, "stats", none{}, nil)
}

// Metrics returns the metrics for a monitoring system.
func (w *Worker) Metrics(ctx context.Context) (*MetricsResult, error) {
	return call[MetricsResult](ctx, w, "metrics", none{}, nil)
}

// Configure changes options. A worker that is started later gets them, too.
func (w *Worker) Configure(ctx context.Context, options Options) (*Options, error) {
	values, err := call[Options](ctx, w, "configure", options, nil)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remember(options)
	}
	return values, err
}

// Trace starts or stops a trace.
func (w *Worker) Trace(ctx context.Context, params TraceParams) (*TraceResult, error) {
	return call[TraceResult](ctx, w, "trace", params, nil)
}

// Shutdown finishes the accepted requests, or cancels them with Mode "cancel", and ends the worker.
func (w *Worker) Shutdown(params ShutdownParams) {
	grace := time.Duration(0)
	if params.Mode == "cancel" {
		grace = 5 * time.Second
	}
	w.close(params, grace)
}

// Close cancels the accepted requests and ends the worker.
func (w *Worker) Close() error {
	w.close(ShutdownParams{Mode: "cancel"}, 5*time.Second)
	return nil
}

func (w *Worker) close(params ShutdownParams, grace time.Duration) {
	w.mu.Lock()
	if !w.isClosed {
		w.isClosed = true
		close(w.closed)
	}
	l := w.life
	w.mu.Unlock()
	if l != nil && !l.hasEnded() {
		l.tell("shutdown", params)
		l.finish(grace)
	}
}

// Pid is the process id of the worker, or 0.
func (w *Worker) Pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life == nil {
		return 0
	}
	return w.life.process.Process.Pid
}

func closedError() *Error { return ownError(ErrClosed, "closed", 0, "this worker is closed") }

func (w *Worker) answered() {
	w.mu.Lock()
	w.deaths = 0
	w.mu.Unlock()
}

// died counts the end of a worker, and makes its error. After some statuses a restart would fail again: an invalid option (64),
// an unusable cookie file (66) or cache directory (73).
func (w *Worker) died(status string, log, lost []string, misfit *Error, isMissing bool) *Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaths++
	w.diedAt = time.Now()
	w.hasRun = w.hasRun || status != ""
	isHopeless := misfit != nil || status == "64" || status == "66" || status == "73" || (isMissing && !w.hasRun)
	text := "the worker did not start"
	if status != "" {
		text = fmt.Sprintf("the worker ended (status %s)", status)
	}
	if len(log) > 0 {
		text += ": " + log[len(log)-1]
	}
	w.failure = ownError(ErrWorkerExited, "workerExited", 0, "%s", text)
	if misfit != nil {
		w.failure = misfit
	}
	w.failure.Retryable = !w.isClosed && !isHopeless && w.settings.MaxRestarts > 0
	w.failure.ExitStatus, w.failure.Log, w.failure.Lost = status, log, lost
	return w.failure
}

// running returns the worker that runs, or another one after the pause.
func (w *Worker) running(ctx context.Context) (*life, error) {
	for {
		l, left, err := w.runningOrPause()
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-time.After(left):
		case <-w.closed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *Worker) runningOrPause() (*life, time.Duration, error) {
	w.mu.Lock()
	if w.isClosed {
		w.mu.Unlock()
		return nil, 0, closedError()
	}
	if w.life != nil && !w.life.hasEnded() {
		defer w.mu.Unlock()
		return w.life, 0, nil
	}
	left, err := w.pauseLeft()
	if err != nil || left > 0 {
		w.mu.Unlock()
		return nil, left, err
	}
	binary, err := FindWorker(w.settings.Binary)
	if err == nil {
		var l *life
		if l, err = start(w, binary, w.settings.Arguments, w.configured); err == nil {
			w.life = l
			w.mu.Unlock()
			return l, 0, nil
		}
	}
	w.mu.Unlock()
	isMissing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, exec.ErrNotFound)
	return nil, 0, w.died("", []string{err.Error()}, nil, nil, isMissing)
}

// pauseLeft is the time until the next start. It fails if there will be none, or if too many workers died and it is not due.
func (w *Worker) pauseLeft() (time.Duration, error) {
	if w.failure == nil {
		return 0, nil
	}
	isGivenUp := w.deaths > w.settings.MaxRestarts
	pause := w.settings.LongestPause
	if shift := w.deaths - 1; !isGivenUp && shift < 20 && 100*time.Millisecond<<shift < pause {
		pause = 100 * time.Millisecond << shift
	}
	left := time.Until(w.diedAt.Add(pause))
	if !w.failure.Retryable || (isGivenUp && left > 0) {
		return 0, w.failure
	}
	return left, nil
}
