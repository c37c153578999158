package imageworker

// Parameters and results have the members of the protocol. A pointer is for a parameter whose zero has a meaning.

// Options are those that can change at run time. Rate and Proxy may be json.RawMessage("null").
type Options struct {
	MemoryLimit           *int64    `json:"memoryLimit,omitempty"`
	DiskLimit             *int64    `json:"diskLimit,omitempty"`
	MaxAgeMs              *int      `json:"maxAgeMs,omitempty"`
	MaxConcurrent         any       `json:"maxConcurrent,omitempty"`
	MaxPerHost            any       `json:"maxPerHost,omitempty"`
	MaxConnectionsPerHost *int      `json:"maxConnectionsPerHost,omitempty"`
	Rate                  any       `json:"rate,omitempty"`
	MaxRedirects          *int      `json:"maxRedirects,omitempty"`
	MaxQueued             *int      `json:"maxQueued,omitempty"`
	Order                 *string   `json:"order,omitempty"`
	TimeoutMs             *int      `json:"timeoutMs,omitempty"`
	ConnectTimeoutMs      *int      `json:"connectTimeoutMs,omitempty"`
	MinRate               *int      `json:"minRate,omitempty"`
	DeadlineMs            *int      `json:"deadlineMs,omitempty"`
	Retries               *int      `json:"retries,omitempty"`
	FailedTTLMs           *int      `json:"failedTtlMs,omitempty"`
	MaxBytes              *int64    `json:"maxBytes,omitempty"`
	MaxPixels             *int      `json:"maxPixels,omitempty"`
	DecodeTimeoutMs       *int      `json:"decodeTimeoutMs,omitempty"`
	MinFree               *int      `json:"minFree,omitempty"`
	Verify                *string   `json:"verify,omitempty"`
	Resolver              *string   `json:"resolver,omitempty"`
	Network               *string   `json:"network,omitempty"`
	Proxy                 any       `json:"proxy,omitempty"`
	UserAgent             *string   `json:"userAgent,omitempty"`
	Header                *[]string `json:"header,omitempty"`
	Insecure              *bool     `json:"insecure,omitempty"`
	KeyIgnoreQuery        *[]string `json:"keyIgnoreQuery,omitempty"`
	Events                *[]string `json:"events,omitempty"`
	EOF                   *string   `json:"eof,omitempty"`
	ExitStatus            *bool     `json:"exitStatus,omitempty"`
	LogLevel              *string   `json:"logLevel,omitempty"`
	LogFormat             *string   `json:"logFormat,omitempty"`
}

// Client is in protocol/reference.md.
type Client struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// InitializeParams is in protocol/reference.md.
type InitializeParams struct {
	ProtocolVersion int      `json:"protocolVersion,omitempty"`
	Client          *Client  `json:"client,omitempty"`
	Options         *Options `json:"options,omitempty"`
	Formats         bool     `json:"formats,omitempty"`
}

// Crop is in protocol/reference.md.
type Crop struct {
	X      int `json:"x"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
}

// FocalPoint is in protocol/reference.md.
type FocalPoint struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Transform is in protocol/reference.md.
type Transform struct {
	Width        int      `json:"width,omitempty"`
	Height       int      `json:"height,omitempty"`
	Fit          string   `json:"fit,omitempty"`
	Enlarge      bool     `json:"enlarge,omitempty"`
	Rotate       string   `json:"rotate,omitempty"`
	Crop         any      `json:"crop,omitempty"`
	Format       string   `json:"format,omitempty"`
	Quality      int      `json:"quality,omitempty"`
	Frames       string   `json:"frames,omitempty"`
	Background   string   `json:"background,omitempty"`
	Blur         float64  `json:"blur,omitempty"`
	Grayscale    bool     `json:"grayscale,omitempty"`
	CornerRadius int      `json:"cornerRadius,omitempty"`
	Metadata     []string `json:"metadata,omitempty"`
}

// Want is in protocol/reference.md.
type Want struct {
	MinWidth       int      `json:"minWidth,omitempty"`
	MinHeight      int      `json:"minHeight,omitempty"`
	MaxWidth       int      `json:"maxWidth,omitempty"`
	MaxHeight      int      `json:"maxHeight,omitempty"`
	MaxPixels      int64    `json:"maxPixels,omitempty"`
	MaxFrames      int      `json:"maxFrames,omitempty"`
	MaxAspectRatio float64  `json:"maxAspectRatio,omitempty"`
	Formats        []string `json:"formats,omitempty"`
}

// OutputParams is in protocol/reference.md.
type OutputParams struct {
	Transform  *Transform `json:"transform,omitempty"`
	Strip      bool       `json:"strip,omitempty"`
	MaxBytes   int64      `json:"maxBytes,omitempty"`
	MinQuality int        `json:"minQuality,omitempty"`
	Deliver    string     `json:"deliver,omitempty"`
	SaveTo     string     `json:"saveTo,omitempty"`
	Mode       string     `json:"mode,omitempty"`
}

// LoadParams is in protocol/reference.md.
type LoadParams struct {
	URL         string                  `json:"url,omitempty"`
	File        *HostFile               `json:"file,omitempty"`
	Key         string                  `json:"key,omitempty"`
	Priority    string                  `json:"priority,omitempty"`
	Group       string                  `json:"group,omitempty"`
	Slot        string                  `json:"slot,omitempty"`
	Headers     map[string]string       `json:"headers,omitempty"`
	Cache       string                  `json:"cache,omitempty"`
	Store       string                  `json:"store,omitempty"`
	Deliver     string                  `json:"deliver,omitempty"`
	SaveTo      string                  `json:"saveTo,omitempty"`
	Validate    string                  `json:"validate,omitempty"`
	Events      []string                `json:"events,omitempty"`
	TimeoutMs   *int                    `json:"timeoutMs,omitempty"`
	DeadlineMs  *int                    `json:"deadlineMs,omitempty"`
	Retries     *int                    `json:"retries,omitempty"`
	MaxBytes    *int64                  `json:"maxBytes,omitempty"`
	RetryFailed bool                    `json:"retryFailed,omitempty"`
	Response    bool                    `json:"response,omitempty"`
	Digest      string                  `json:"digest,omitempty"`
	Want        *Want                   `json:"want,omitempty"`
	Transform   *Transform              `json:"transform,omitempty"`
	Placeholder bool                    `json:"placeholder,omitempty"`
	Facts       []string                `json:"facts,omitempty"`
	Isolate     string                  `json:"isolate,omitempty"`
	Outputs     map[string]OutputParams `json:"outputs,omitempty"`
	OnEvent     func(Event)             `json:"-"`
}

// PrefetchItem is in protocol/reference.md.
type PrefetchItem struct {
	URL     string            `json:"url"`
	Key     string            `json:"key,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// PrefetchParams is in protocol/reference.md.
type PrefetchParams struct {
	URLs      []PrefetchItem    `json:"urls"`
	Priority  string            `json:"priority,omitempty"`
	Group     string            `json:"group,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Want      *Want             `json:"want,omitempty"`
	Transform *Transform        `json:"transform,omitempty"`
	Events    []string          `json:"events,omitempty"`
	OnEvent   func(Event)       `json:"-"`
}

// ProbeParams is in protocol/reference.md.
type ProbeParams struct {
	URL         string            `json:"url"`
	Key         string            `json:"key,omitempty"`
	Priority    string            `json:"priority,omitempty"`
	Group       string            `json:"group,omitempty"`
	Slot        string            `json:"slot,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Cache       string            `json:"cache,omitempty"`
	TimeoutMs   *int              `json:"timeoutMs,omitempty"`
	DeadlineMs  *int              `json:"deadlineMs,omitempty"`
	Retries     *int              `json:"retries,omitempty"`
	RetryFailed bool              `json:"retryFailed,omitempty"`
}

// HostFile is in protocol/reference.md.
type HostFile struct {
	Path string `json:"path,omitempty"`
	Root string `json:"root,omitempty"`
	FD   *int   `json:"fd,omitempty"`
	PID  int    `json:"pid,omitempty"`
}

// ProcessParams is in protocol/reference.md.
type ProcessParams struct {
	File        *HostFile               `json:"file,omitempty"`
	Data        []byte                  `json:"data,omitempty"`
	Priority    string                  `json:"priority,omitempty"`
	Group       string                  `json:"group,omitempty"`
	Slot        string                  `json:"slot,omitempty"`
	DeadlineMs  *int                    `json:"deadlineMs,omitempty"`
	MaxBytes    *int64                  `json:"maxBytes,omitempty"`
	Want        *Want                   `json:"want,omitempty"`
	Validate    string                  `json:"validate,omitempty"`
	Placeholder bool                    `json:"placeholder,omitempty"`
	Facts       []string                `json:"facts,omitempty"`
	Isolate     string                  `json:"isolate,omitempty"`
	Outputs     map[string]OutputParams `json:"outputs,omitempty"`
}

// CancelParams is in protocol/reference.md.
type CancelParams struct {
	ID    any    `json:"id,omitempty"`
	URL   string `json:"url,omitempty"`
	Group string `json:"group,omitempty"`
	Slot  string `json:"slot,omitempty"`
	All   bool   `json:"all,omitempty"`
}

// PrioritizeParams is in protocol/reference.md.
type PrioritizeParams struct {
	ID       any    `json:"id,omitempty"`
	URL      string `json:"url,omitempty"`
	Group    string `json:"group,omitempty"`
	Slot     string `json:"slot,omitempty"`
	Priority string `json:"priority"`
}

// QueryParams is in protocol/reference.md.
type QueryParams struct {
	URL       string     `json:"url,omitempty"`
	Key       string     `json:"key,omitempty"`
	File      *HostFile  `json:"file,omitempty"`
	Transform *Transform `json:"transform,omitempty"`
}

// StoreParams is in protocol/reference.md.
type StoreParams struct {
	URL     string `json:"url,omitempty"`
	Key     string `json:"key,omitempty"`
	Path    string `json:"path,omitempty"`
	Data    []byte `json:"data,omitempty"`
	Deliver string `json:"deliver,omitempty"`
}

// ClearParams is in protocol/reference.md.
type ClearParams struct {
	Tier             string    `json:"tier,omitempty"`
	URL              string    `json:"url,omitempty"`
	Key              string    `json:"key,omitempty"`
	File             *HostFile `json:"file,omitempty"`
	Prefix           string    `json:"prefix,omitempty"`
	Host             string    `json:"host,omitempty"`
	OlderThanSeconds *int      `json:"olderThanSeconds,omitempty"`
	Expired          bool      `json:"expired,omitempty"`
	Failures         bool      `json:"failures,omitempty"`
}

// ReleaseParams is in protocol/reference.md.
type ReleaseParams struct {
	Path   string `json:"path,omitempty"`
	All    bool   `json:"all,omitempty"`
	Unused bool   `json:"unused,omitempty"`
}

// TraceParams is in protocol/reference.md.
type TraceParams struct {
	Action string `json:"action"`
	Path   string `json:"path,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

// ShutdownParams is in protocol/reference.md.
type ShutdownParams struct {
	Mode string `json:"mode,omitempty"`
}

// Server is in protocol/reference.md.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Formats is in protocol/reference.md.
type Formats struct {
	Decode    []string          `json:"decode"`
	Encode    []string          `json:"encode"`
	Libraries map[string]string `json:"libraries"`
}

// CacheLocation is in protocol/reference.md.
type CacheLocation struct {
	Directory string `json:"directory"`
	Namespace string `json:"namespace"`
}

// InitializeResult is in protocol/reference.md.
type InitializeResult struct {
	Server          Server           `json:"server"`
	ProtocolVersion int              `json:"protocolVersion"`
	Methods         []string         `json:"methods"`
	Events          []string         `json:"events"`
	Formats         *Formats         `json:"formats,omitempty"`
	Sandbox         []string         `json:"sandbox,omitempty"`
	Limits          map[string]int64 `json:"limits"`
	Cache           CacheLocation    `json:"cache"`
}

// Timing is in protocol/reference.md.
type Timing struct {
	QueuedMs     float64 `json:"queuedMs,omitempty"`
	LookupMs     float64 `json:"lookupMs,omitempty"`
	WaitMs       float64 `json:"waitMs,omitempty"`
	DnsMs        float64 `json:"dnsMs,omitempty"`
	ConnectMs    float64 `json:"connectMs,omitempty"`
	TlsMs        float64 `json:"tlsMs,omitempty"`
	RequestMs    float64 `json:"requestMs,omitempty"`
	BodyMs       float64 `json:"bodyMs,omitempty"`
	StoreMs      float64 `json:"storeMs,omitempty"`
	DecodeWaitMs float64 `json:"decodeWaitMs,omitempty"`
	DecodeMs     float64 `json:"decodeMs,omitempty"`
	DeliverMs    float64 `json:"deliverMs,omitempty"`
	FirstByteMs  float64 `json:"firstByteMs,omitempty"`
	TotalMs      float64 `json:"totalMs"`
}

// Placeholder is in protocol/reference.md.
type Placeholder struct {
	Thumbhash string `json:"thumbhash"`
	Color     string `json:"color"`
}

// Container is in protocol/reference.md. A member is nil if the file does not tell it for certain.
type Container struct {
	HasAlpha   *bool  `json:"hasAlpha,omitempty"`
	ColorSpace string `json:"colorSpace,omitempty"`
	BitDepth   int    `json:"bitDepth,omitempty"`
	HasGPS     *bool  `json:"hasGPS,omitempty"`
	C2PA       *bool  `json:"c2pa,omitempty"`
}

// EXIF is in protocol/reference.md.
type EXIF struct {
	Orientation       int     `json:"orientation,omitempty"`
	DateTimeOriginal  string  `json:"dateTimeOriginal,omitempty"`
	Make              string  `json:"make,omitempty"`
	Model             string  `json:"model,omitempty"`
	LensModel         string  `json:"lensModel,omitempty"`
	ExposureTime      float64 `json:"exposureTime,omitempty"`
	FNumber           float64 `json:"fNumber,omitempty"`
	ISO               float64 `json:"iso,omitempty"`
	FocalLength       float64 `json:"focalLength,omitempty"`
	FocalLengthIn35mm float64 `json:"focalLengthIn35mm,omitempty"`
	Artist            string  `json:"artist,omitempty"`
	Copyright         string  `json:"copyright,omitempty"`
}

// Position is in protocol/reference.md.
type Position struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Altitude  float64 `json:"altitude,omitempty"`
}

// Pixels is in protocol/reference.md.
type Pixels struct {
	Path     string `json:"path"`
	Offset   int    `json:"offset"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Stride   int    `json:"stride"`
	Channels int    `json:"channels"`
	Bytes    int64  `json:"bytes"`
}

// Size is in protocol/reference.md.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Source is in protocol/reference.md.
type Source struct {
	Bytes       int64  `json:"bytes"`
	Format      string `json:"format"`
	Width       int    `json:"width,omitempty"`
	Height      int    `json:"height,omitempty"`
	Frames      int    `json:"frames,omitempty"`
	Orientation int    `json:"orientation,omitempty"`
	Upright     *Size  `json:"upright,omitempty"`
}

// HTTPResponse is in protocol/reference.md.
type HTTPResponse struct {
	Status  int            `json:"status"`
	Headers map[string]any `json:"headers"`
}

// OutputFile is in protocol/reference.md.
type OutputFile struct {
	Bytes       int64  `json:"bytes"`
	MediaType   string `json:"mediaType"`
	Format      string `json:"format"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Frames      int    `json:"frames,omitempty"`
	Orientation int    `json:"orientation,omitempty"`
	Upright     *Size  `json:"upright,omitempty"`
	Quality     int    `json:"quality,omitempty"`
	Path        string `json:"path,omitempty"`
	Data        []byte `json:"data,omitempty"`
}

// Image is in protocol/reference.md.
type Image struct {
	URL            string                `json:"url,omitempty"`
	Key            string                `json:"key"`
	Cache          string                `json:"cache"`
	Bytes          int64                 `json:"bytes"`
	MediaType      string                `json:"mediaType"`
	Format         string                `json:"format,omitempty"`
	Width          int                   `json:"width,omitempty"`
	Height         int                   `json:"height,omitempty"`
	Path           string                `json:"path,omitempty"`
	Data           []byte                `json:"data,omitempty"`
	Pixels         *Pixels               `json:"pixels,omitempty"`
	Source         *Source               `json:"source,omitempty"`
	Outputs        map[string]OutputFile `json:"outputs,omitempty"`
	Placeholder    *Placeholder          `json:"placeholder,omitempty"`
	Digest         string                `json:"digest,omitempty"`
	PerceptualHash string                `json:"perceptualHash,omitempty"`
	Container      *Container            `json:"container,omitempty"`
	EXIF           *EXIF                 `json:"exif,omitempty"`
	GPS            *Position             `json:"gps,omitempty"`
	FinalURL       string                `json:"finalURL,omitempty"`
	Frames         int                   `json:"frames,omitempty"`
	Orientation    int                   `json:"orientation,omitempty"`
	Upright        *Size                 `json:"upright,omitempty"`
	Response       *HTTPResponse         `json:"response,omitempty"`
	ExpiresAt      string                `json:"expiresAt,omitempty"`
	Kept           bool                  `json:"kept"`
	Damaged        bool                  `json:"damaged,omitempty"`
	HDR            string                `json:"hdr,omitempty"`
	Attempts       int                   `json:"attempts,omitempty"`
	Timing         *Timing               `json:"timing,omitempty"`
}

// ProcessResult is in protocol/reference.md.
type ProcessResult struct {
	Bytes          int64                 `json:"bytes"`
	MediaType      string                `json:"mediaType"`
	Format         string                `json:"format"`
	Width          int                   `json:"width,omitempty"`
	Height         int                   `json:"height,omitempty"`
	Frames         int                   `json:"frames,omitempty"`
	Orientation    int                   `json:"orientation,omitempty"`
	Upright        *Size                 `json:"upright,omitempty"`
	Placeholder    *Placeholder          `json:"placeholder,omitempty"`
	Digest         string                `json:"digest,omitempty"`
	PerceptualHash string                `json:"perceptualHash,omitempty"`
	Container      *Container            `json:"container,omitempty"`
	EXIF           *EXIF                 `json:"exif,omitempty"`
	GPS            *Position             `json:"gps,omitempty"`
	Damaged        bool                  `json:"damaged,omitempty"`
	HDR            string                `json:"hdr,omitempty"`
	Outputs        map[string]OutputFile `json:"outputs,omitempty"`
	Timing         Timing                `json:"timing"`
}

// ProbeResult is in protocol/reference.md.
type ProbeResult struct {
	URL          string `json:"url"`
	Key          string `json:"key"`
	Cache        string `json:"cache"`
	Bytes        int64  `json:"bytes,omitempty"`
	Received     int64  `json:"received,omitempty"`
	MediaType    string `json:"mediaType"`
	Format       string `json:"format,omitempty"`
	Width        int    `json:"width,omitempty"`
	Height       int    `json:"height,omitempty"`
	Frames       int    `json:"frames,omitempty"`
	Orientation  int    `json:"orientation,omitempty"`
	Upright      *Size  `json:"upright,omitempty"`
	FinalURL     string `json:"finalURL,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Attempts     int    `json:"attempts,omitempty"`
	Timing       Timing `json:"timing"`
}

// PrefetchError is in protocol/reference.md.
type PrefetchError struct {
	URL     string `json:"url"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// PrefetchResult is in protocol/reference.md.
type PrefetchResult struct {
	Total      int64           `json:"total"`
	Downloaded int             `json:"downloaded"`
	Cached     int             `json:"cached"`
	Failed     int             `json:"failed"`
	Cancelled  int             `json:"cancelled"`
	Bytes      int64           `json:"bytes"`
	Errors     []PrefetchError `json:"errors"`
}

// CancelResult is in protocol/reference.md.
type CancelResult struct {
	Cancelled int `json:"cancelled"`
}

// PrioritizeResult is in protocol/reference.md.
type PrioritizeResult struct {
	Changed int `json:"changed"`
}

// PauseResult is in protocol/reference.md.
type PauseResult struct {
	Paused bool `json:"paused"`
}

// Lease is in protocol/reference.md.
type Lease struct {
	PID int `json:"pid"`
}

// QueryResult is in protocol/reference.md.
type QueryResult struct {
	Memory      bool     `json:"memory"`
	Disk        bool     `json:"disk"`
	Fresh       bool     `json:"fresh"`
	Path        string   `json:"path,omitempty"`
	Bytes       int64    `json:"bytes,omitempty"`
	StoredAt    string   `json:"storedAt,omitempty"`
	ExpiresAt   string   `json:"expiresAt,omitempty"`
	UsedAt      string   `json:"usedAt,omitempty"`
	Uses        *int     `json:"uses,omitempty"`
	ETag        string   `json:"etag,omitempty"`
	Directory   string   `json:"directory,omitempty"`
	Variants    int      `json:"variants,omitempty"`
	Varying     []string `json:"varying,omitempty"`
	Transforms  []string `json:"transforms,omitempty"`
	Failure     string   `json:"failure,omitempty"`
	FailedUntil string   `json:"failedUntil,omitempty"`
	Lease       *Lease   `json:"lease,omitempty"`
	Reason      string   `json:"reason"`
}

// ClearResult is in protocol/reference.md.
type ClearResult struct {
	Removed int   `json:"removed"`
	Bytes   int64 `json:"bytes"`
}

// ReleaseResult is in protocol/reference.md.
type ReleaseResult struct {
	Released int `json:"released"`
}

// RequestCounts is in protocol/reference.md.
type RequestCounts struct {
	Received  int64 `json:"received"`
	Succeeded int   `json:"succeeded"`
	Failed    int   `json:"failed"`
	Cancelled int   `json:"cancelled"`
}

// WaitingCounts is in protocol/reference.md.
type WaitingCounts struct {
	Lowest  int `json:"lowest"`
	Low     int `json:"low"`
	Normal  int `json:"normal"`
	High    int `json:"high"`
	Highest int `json:"highest"`
}

// QueueState is in protocol/reference.md.
type QueueState struct {
	Waiting WaitingCounts `json:"waiting"`
	Active  int           `json:"active"`
	Window  int           `json:"window"`
	Paused  bool          `json:"paused"`
}

// OriginState is in protocol/reference.md.
type OriginState struct {
	Origin    string `json:"origin"`
	Active    int    `json:"active"`
	Waiting   int    `json:"waiting"`
	Window    int    `json:"window"`
	Health    string `json:"health"`
	HeldUntil string `json:"heldUntil,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// ResolverState is in protocol/reference.md.
type ResolverState struct {
	Kind       string `json:"kind"`
	Names      int    `json:"names,omitempty"`
	Waiting    int    `json:"waiting,omitempty"`
	InFlight   int    `json:"inFlight,omitempty"`
	Window     int    `json:"window,omitempty"`
	Lookups    int    `json:"lookups,omitempty"`
	Queries    int    `json:"queries,omitempty"`
	Unanswered int    `json:"unanswered,omitempty"`
}

// TransferCounts is in protocol/reference.md.
type TransferCounts struct {
	Started   int   `json:"started"`
	Succeeded int   `json:"succeeded"`
	Failed    int   `json:"failed"`
	Bytes     int64 `json:"bytes"`
}

// CacheCounts is in protocol/reference.md.
type CacheCounts struct {
	MemoryHits  int   `json:"memoryHits"`
	DiskHits    int   `json:"diskHits"`
	Revalidated int   `json:"revalidated"`
	Stale       int   `json:"stale"`
	Misses      int   `json:"misses"`
	BytesSaved  int64 `json:"bytesSaved"`
}

// FailureExample is in protocol/reference.md.
type FailureExample struct {
	URL     string `json:"url"`
	Message string `json:"message"`
	Status  int    `json:"status,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Time    string `json:"time"`
}

// FailureState is in protocol/reference.md.
type FailureState struct {
	Kind   string         `json:"kind"`
	Count  int            `json:"count"`
	Latest FailureExample `json:"latest"`
	Hint   string         `json:"hint,omitempty"`
}

// MemoryTierState is in protocol/reference.md.
type MemoryTierState struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	Limit   int64 `json:"limit"`
	Evicted int   `json:"evicted"`
}

// EvictionCounts is in protocol/reference.md.
type EvictionCounts struct {
	Limit     int64 `json:"limit"`
	FreeSpace int   `json:"freeSpace"`
	DiskFull  int   `json:"diskFull"`
}

// DiskTierState is in protocol/reference.md.
type DiskTierState struct {
	Entries    int            `json:"entries"`
	Bytes      int64          `json:"bytes"`
	Limit      int64          `json:"limit"`
	Evicted    int            `json:"evicted"`
	EvictedFor EvictionCounts `json:"evictedFor"`
}

// DecoderState is in protocol/reference.md.
type DecoderState struct {
	Running  int      `json:"running"`
	Decoded  int      `json:"decoded"`
	Failed   int      `json:"failed"`
	Crashed  int      `json:"crashed"`
	TimedOut int      `json:"timedOut"`
	Sandbox  []string `json:"sandbox"`
}

// PixelsState is in protocol/reference.md.
type PixelsState struct {
	Regions int   `json:"regions"`
	Bytes   int64 `json:"bytes"`
}

// StatsResult is in protocol/reference.md.
type StatsResult struct {
	UptimeMs  float64         `json:"uptimeMs"`
	Requests  RequestCounts   `json:"requests"`
	Queue     QueueState      `json:"queue"`
	Origins   []OriginState   `json:"origins"`
	Resolver  ResolverState   `json:"resolver"`
	Transfers TransferCounts  `json:"transfers"`
	Cache     CacheCounts     `json:"cache"`
	Failures  []FailureState  `json:"failures"`
	Memory    MemoryTierState `json:"memory"`
	Disk      DiskTierState   `json:"disk"`
	Decoders  DecoderState    `json:"decoders"`
	Pixels    PixelsState     `json:"pixels"`
	RssBytes  int64           `json:"rssBytes"`
}

// MetricsResult is in protocol/reference.md.
type MetricsResult struct {
	ContentType string `json:"contentType"`
	Text        string `json:"text"`
}

// TraceResult is in protocol/reference.md.
type TraceResult struct {
	Path    string `json:"path"`
	Limit   int64  `json:"limit,omitempty"`
	Events  *int   `json:"events,omitempty"`
	Bytes   *int64 `json:"bytes,omitempty"`
	Dropped *int   `json:"dropped,omitempty"`
	Full    *bool  `json:"full,omitempty"`
}

// ErrorData is in protocol/reference.md.
type ErrorData struct {
	Kind         string        `json:"kind"`
	URL          string        `json:"url,omitempty"`
	Retryable    bool          `json:"retryable"`
	Attempts     int           `json:"attempts,omitempty"`
	Status       int           `json:"status,omitempty"`
	Phase        string        `json:"phase,omitempty"`
	RetryAfterMs int           `json:"retryAfterMs,omitempty"`
	CPUMs        *int64        `json:"cpuMs,omitempty"`
	WallMs       *int64        `json:"wallMs,omitempty"`
	OriginDown   bool          `json:"originDown,omitempty"`
	Failure      string        `json:"failure,omitempty"`
	Rule         string        `json:"rule,omitempty"`
	Member       string        `json:"member,omitempty"`
	Output       string        `json:"output,omitempty"`
	Wanted       string        `json:"wanted,omitempty"`
	Format       string        `json:"format,omitempty"`
	Detected     string        `json:"detected,omitempty"`
	Width        *int          `json:"width,omitempty"`
	Height       *int          `json:"height,omitempty"`
	Frames       int           `json:"frames,omitempty"`
	MaxSide      int           `json:"maxSide,omitempty"`
	Bytes        *int64        `json:"bytes,omitempty"`
	Limit        *float64      `json:"limit,omitempty"`
	ID           any           `json:"id,omitempty"`
	Supported    []int         `json:"supported,omitempty"`
	Response     *HTTPResponse `json:"response,omitempty"`
	Timing       *Timing       `json:"timing,omitempty"`
}
