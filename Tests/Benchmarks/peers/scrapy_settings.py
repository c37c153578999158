"""Settings of Scrapy for both ways. Given as text by `-s`, IMAGES_THUMBS would make Scrapy's own pipeline fail on each image."""

IMAGES_THUMBS = {"small": (256, 256)}
LOG_LEVEL = "ERROR"
