# frozen_string_literal: true

# A Rails application for test_active_storage.py. SITE is its folder, with config/initializers, lib and storage; JOBS is the
# adapter of its jobs. USED: the worker is used before the server forks.

require "logger"
require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "action_controller/railtie"
require "active_storage/engine"

class Site < Rails::Application
  config.root = ENV.fetch("SITE")
  config.load_defaults 6.1
  config.eager_load = config.cache_classes = true
  config.consider_all_requests_local = false
  config.secret_key_base = "a" * 64
  config.hosts.clear
  config.logger = Logger.new("#{root}/site.log")
  config.log_level = :info
  config.active_job.queue_adapter = ENV.fetch("JOBS", "inline").to_sym
  config.active_storage.service = :local
  config.active_storage.service_configurations = { "local" => { "service" => "Disk", "root" => "#{root}/storage" } }
  config.active_storage.track_variants = false
  routes.append { post "/pictures" => "pictures#create" }

  # One process and thread at a time, as SQLite wants it.
  def self.alone
    return yield if Thread.current[:alone]
    File.open(Rails.root.join("lock"), "w") do |file|
      file.flock(File::LOCK_EX)
      Thread.current[:alone] = true
      yield
    ensure
      Thread.current[:alone] = nil
    end
  end

  module Updates
    def update!(...) = Site.alone { super }
  end
end

ENV["DATABASE_URL"] = "sqlite3:#{ENV.fetch("SITE")}/site.sqlite3?pool=40"
Rails.application.initialize!
ActiveStorage::Blob.prepend Site::Updates

class Article < ActiveRecord::Base
  has_one_attached :picture
end

class PicturesController < ActionController::API
  # Answers with the variants of the query `variants`, by name. The errors are those of Rails, or with `explain` told.
  def create
    article = Site.alone { Article.create!(picture: params.require(:picture)) }
    blob = article.picture.blob.reload
    blob.update!(content_type: params[:type]) if params[:type]
    made = JSON.parse(params[:variants] || "{}").transform_values { |variation| told { file(blob.variant(variation)) } }
    link = rails_blob_representation_proxy_path(blob.signed_id, variation, blob.filename) if blob.variable?
    render json: { **blob.metadata.slice(:width, :height, :analyzed), type: blob.content_type, variants: made, link: link,
                   process: Process.pid, worker: ActiveStoragePictures.worker.pid }
  end

  private

  def file(variant)
    variant.processed
    { path: variant.service.path_for(variant.key), type: variant.content_type }
  end

  def told
    yield
  rescue StandardError => error
    raise unless params[:explain]
    { error: error.class.name, message: error.message }
  end

  def variation = ActiveStorage::Variation.encode(resize_to_limit: [50, 50], format: :png)
end

Site.alone do
  next if Article.table_exists?
  Article.connection.execute("PRAGMA journal_mode = WAL") # Those who read do not wait for those who write.
  ActiveRecord::Migration.verbose = false
  ActiveRecord::MigrationContext.new(ActiveStorage::Engine.root.join("db/migrate"), ActiveRecord::SchemaMigration).migrate
  ActiveRecord::Schema.define { create_table(:articles) }
end
Article.reset_column_information
if ENV["USED"]
  File.open(ENV["USED"]) { |file| ActiveStoragePictures.process(file) }
  warn "used: #{ActiveStoragePictures.worker.pid}"
end
