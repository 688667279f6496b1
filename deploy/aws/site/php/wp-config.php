<?php
// SPDX-License-Identifier: Apache-2.0
// wp-config.php - the site's settings, of the task's environment. Keys and salts are not among them: WordPress makes them once and keeps them in the
// database, so that all tasks of a site have the same.

define('DB_NAME', getenv('WORDPRESS_DB_NAME'));
define('DB_USER', getenv('WORDPRESS_DB_USER'));
define('DB_PASSWORD', getenv('WORDPRESS_DB_PASSWORD'));
define('DB_HOST', getenv('WORDPRESS_DB_HOST'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', 'utf8mb4_unicode_ci');
$table_prefix = 'wp_';

// The site's address, and TLS to the database; written by Leasehold, never by a tenant.
eval((string) getenv('WORDPRESS_CONFIG_EXTRA'));

if (($_SERVER['HTTP_X_FORWARDED_PROTO'] ?? '') === 'https') {
    $_SERVER['HTTPS'] = 'on';
}
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
define('WPMU_PLUGIN_DIR', ABSPATH . 'leasehold/mu-plugins');
define('FS_METHOD', 'direct');
// A new version is a new image.
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_AUTO_UPDATE_CORE', false);
define('WP_DEBUG', false);

require_once ABSPATH . 'wp-settings.php';
